-- Removes tasks: ARGV from 2 on are members. Answers how many of them there were.
local removed = redis.call('ZREM', due, unpack(ARGV, 2))
count()
return removed
