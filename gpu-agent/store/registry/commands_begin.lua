-- A command that was taken and has an identity. ARGV: identity
local done = 'tensor-done:' .. ARGV[4]
if strange() then return {'REFILL'} end
local was = redis.pcall('GET', done)
if type(was) == 'string' then
	if was:sub(1, 1) == 'A' then return {'DONE', {was:sub(2)}} end
	local node = was:sub(2)
	if node ~= NODE and alive(node) then return {'BUSY'} end
	redis.call('SET', done, 'W' .. NODE, 'EX', 3600)
	return {'AGAIN'}
end
redis.call('SET', done, 'W' .. NODE, 'EX', 3600)
return {'OK'}
