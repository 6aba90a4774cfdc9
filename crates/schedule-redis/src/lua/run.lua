-- The id of the server process that runs this. A restarted server and a promoted replica have another id even if they
-- have the data, because that data may be out of date. Where INFO is forbidden, all processes have the same id.
local function run()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or 'unknown'
end

-- Whether all pending tasks of the partition are in it, as far as Redis can know.
local function is_complete(book)
  local epoch = redis.call('HGET', book, 'epoch')
  if epoch and epoch ~= run() then
    redis.call('HDEL', book, 'epoch')
    return false
  end
  return epoch ~= false
end
