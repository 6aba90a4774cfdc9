-- Releases the lock KEYS[1], if its owner is ARGV[1].
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
