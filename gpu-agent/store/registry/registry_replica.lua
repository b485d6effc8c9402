-- This agent has a copy of what another one has. ARGV: name, '', fields…
local name = ARGV[4]
local have, instead = known(name)
if instead then return instead end
have = promoted(name, have)
if not replicate(name, have, fields_at(6)) then return {'MISSING'} end
return answer('OK', name)
