-- What a tensor has become: sealed, touched, lost. ARGV: name, '', fields…
local name = ARGV[4]
local have, instead = known(name)
if instead then return instead end
if not have or have.node ~= NODE or have.epoch ~= EPOCH then return {'MISSING'} end
write(name, 6)
return answer('OK', name)
