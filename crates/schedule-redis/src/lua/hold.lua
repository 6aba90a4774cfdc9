-- Holds lanes back. KEYS[1] is the sorted set of them; ARGV are how many milliseconds an expired hold is kept, and
-- then pairs of expiry and lane. The latest expiry of a lane wins. Returns it for each lane.
local held, kept = KEYS[1], tonumber(ARGV[1])
local answers = {}
for at = 2, #ARGV, 2 do
  redis.call('ZADD', held, 'GT', ARGV[at], ARGV[at + 1])
  answers[#answers + 1] = redis.call('ZSCORE', held, ARGV[at + 1])
end

local time = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', held, '-inf', time[1] * 1000 - kept)
local last = redis.call('ZRANGE', held, -1, -1, 'WITHSCORES')
if last[2] then
  redis.call('PEXPIREAT', held, string.format('%.0f', last[2] + kept))
end
return answers
