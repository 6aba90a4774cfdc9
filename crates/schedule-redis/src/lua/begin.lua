-- Notes in the book KEYS[1] that ARGV[1] has begun to fill the partition.
redis.call('HSET', KEYS[1], 'building', ARGV[1] .. ':' .. run())
return 1
