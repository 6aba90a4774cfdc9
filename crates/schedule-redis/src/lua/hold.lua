-- Holds lanes back. KEYS[1] is the sorted set of them; ARGV are how many milliseconds a hold that is over is kept, and
-- then pairs of until when and lane. The latest time that anybody said stands. Answers what stands for each.
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
