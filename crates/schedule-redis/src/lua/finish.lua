-- ARGV[1] has filled the partition of the book KEYS[1]. The partition is complete if the note of `begin` is still there:
-- then nothing was lost meanwhile, and no other process has begun to fill it. Returns whether it is complete.
local here = run()
if redis.call('HGET', KEYS[1], 'building') ~= ARGV[1] .. ':' .. here then
  return 0
end
redis.call('HDEL', KEYS[1], 'building')
redis.call('HSET', KEYS[1], 'epoch', here)
return 1
