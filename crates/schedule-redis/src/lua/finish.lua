-- ARGV[1] has filled the partition of the book KEYS[1]: it is complete if the note from the beginning is still there,
-- that is, if nothing was lost meanwhile and nobody else has begun again. Answers whether it is.
local here = run()
if redis.call('HGET', KEYS[1], 'building') ~= ARGV[1] .. ':' .. here then
  return 0
end
redis.call('HDEL', KEYS[1], 'building')
redis.call('HSET', KEYS[1], 'epoch', here)
return 1
