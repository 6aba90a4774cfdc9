-- Takes up to ARGV[3] tasks that are due by ARGV[2], earliest first. Returns false if the partition is not complete;
-- otherwise when the next task is due (false if there is none), then the tasks, each followed by its due time.
if not is_complete(book) then
  return false
end
local ready = math.min(redis.call('ZCOUNT', due, '-inf', ARGV[2]), tonumber(ARGV[3]))
local taken = {}
if ready > 0 then
  taken = redis.call('ZPOPMIN', due, ready)
  count()
end
local next = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')
return { next[2] or false, taken }
