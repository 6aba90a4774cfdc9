-- The server process that runs this. One that was started again, or a replica that was promoted, has another id even
-- if it has the data: it may be that of a while ago. Where INFO is forbidden, all processes look the same.
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
