-- Adds tasks: ARGV from 2 on are pairs of score and member. A task that is already there never moves to a later time.
redis.call('ZADD', due, 'LT', unpack(ARGV, 2))
count()
return 1
