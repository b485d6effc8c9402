-- ARGV: name, holder
local name, holder = ARGV[4], ARGV[5]
local have, instead = known(name)
if instead then return instead end
if have and have.node ~= NODE and has_replica(name) then
	holder = holder_at(NODE, holder)
elseif not have or have.node ~= NODE or have.epoch ~= EPOCH then
	return {'MISSING'}
end
redis.call('SREM', holders(name), holder)
count(name)
return {'OK'}
