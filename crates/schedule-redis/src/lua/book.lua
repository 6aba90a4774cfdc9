-- The beginning of every script on a class of a lane. KEYS[1] is the book of the lane's partition, KEYS[2] the due tasks
-- of that class, ARGV[1] the name of the class in the book.
--
-- The book counts the tasks of each class of a lane. A class with fewer tasks than its count has lost some (an eviction),
-- and it is unknown which: the partition is no longer complete, and a rebuild in progress has to begin again.
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
