-- Removes tasks: ARGV from 2 on are members. Returns how many of them were there.
local removed = redis.call('ZREM', due, unpack(ARGV, 2))
count()
return removed
