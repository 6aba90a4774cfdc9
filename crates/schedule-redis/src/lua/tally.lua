-- Counts for a lane. KEYS[1] is its tally: second -> 'first retries failures'. ARGV: the second from which to add up,
-- how many seconds are kept, and then for each count its second and its three numbers. Returns the three sums.
local tally, since, kept = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

local function split(counted)
  local first, retries, failures = string.match(counted or '0 0 0', '^(%d+) (%d+) (%d+)$')
  return tonumber(first or 0), tonumber(retries or 0), tonumber(failures or 0)
end

for at = 3, #ARGV, 4 do
  local first, retries, failures = split(redis.call('HGET', tally, ARGV[at]) or nil)
  redis.call('HSET', tally, ARGV[at], string.format('%.0f %.0f %.0f',
    first + ARGV[at + 1], retries + ARGV[at + 2], failures + ARGV[at + 3]))
end
redis.call('EXPIRE', tally, kept)

local all, newest = redis.call('HGETALL', tally), 0
for at = 1, #all, 2 do
  newest = math.max(newest, tonumber(all[at]))
end
local sums = { 0, 0, 0 }
for at = 1, #all, 2 do
  local second = tonumber(all[at])
  if second < newest - kept then
    redis.call('HDEL', tally, all[at])
  elseif second >= since then
    local first, retries, failures = split(all[at + 1])
    sums = { sums[1] + first, sums[2] + retries, sums[3] + failures }
  end
end
return sums
