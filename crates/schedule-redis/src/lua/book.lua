-- What every script on a class of a lane begins with. KEYS[1] is the book of the lane's partition, KEYS[2] the due tasks
-- of that class, ARGV[1] what the book calls it.
--
-- The book counts what each class of a lane holds. What holds less than it should has lost something (it was evicted), and then
-- nobody can say what: the partition is not complete any more, and whoever is rebuilding it has to begin again.
local book, due, lane = KEYS[1], KEYS[2], ARGV[1]

if redis.call('ZCARD', due) < tonumber(redis.call('HGET', book, lane) or '0') then
  redis.call('HDEL', book, 'epoch', 'building')
end

-- Counts again, after a change.
local function count()
  local held = redis.call('ZCARD', due)
  if held == 0 then
    redis.call('HDEL', book, lane)
  else
    redis.call('HSET', book, lane, held)
  end
end
