# SPDX-License-Identifier: Apache-2.0
"""send_NAME of the frames that are ours (vcuda.api): begun, filled in, and posted or awaited.  Parameters are what
travels: a handle is its number.  By hand remain those with a payload or with a run of bytes in their answer, and
what says hand(shim): shim/ puts more into it, or shares the code between several.
"""
from . import text
from .wire import crossing, reply_fields, request_fields


def parameters(api, entry):
    """[(declaration, line that puts it into the body)] of what is sent."""
    sizes = {p.name: p for p in entry.params}
    out = []
    for field in request_fields(api, entry):
        p = sizes[field.name]
        n = p.name
        if p.mark == "str":
            out.append((f"const char *{n}", f"\tshim_put_string(&call, &body->{n}, {n});"))
        elif field.c_type == "struct wire_run":
            out.append((f"const void *{n}", text.wrap("\tshim_put(", ["&call", f"&body->{n}", n, p.size], ");")))
        else:
            out.append((f"{field.c_type} {n}", f"\tbody->{n} = {n};"))
    return out


def is_made(api, entry):
    """Whether the frame is sent by what is made here."""
    carries = entry.has("payload") or any(p.base == "struct frame_destination" for p in entry.params)
    return entry.verb in ("post", "call") and not carries and not entry.hand("shim") and \
        all(f.c_type != "struct wire_run" for f in reply_fields(api, entry))


def function(api, entry):
    reply = reply_fields(api, entry)
    sent = parameters(api, entry)
    declared = [declaration for declaration, _ in sent] + [f"{f.c_type} *{f.name}" for f in reply]
    out = f"\n/* {entry.verb} {entry.op} */\n"
    out += text.prototype("static inline CUresult", f"send_{entry.name}", declared, "\n{\n")
    out += "\tstruct shim_call call;\n"
    out += text.wrap(f"\tstruct wire_{entry.name} *body = shim_begin(",
                     ["&call", f"OP_{entry.name}", "sizeof(*body)"], ");") + "\n"
    if reply:
        out += f"\tconst struct wire_{entry.name}_reply *reply;\n"
    out += "\n" + "".join(line + "\n" for _, line in sent)
    if entry.verb == "post":
        return out + "\treturn shim_post(&call);\n}\n"
    if not reply:
        return out + "\tshim_wait(&call, 0);\n\treturn shim_end(&call);\n}\n"
    lines = [f"*{f.name} = reply->{f.name};" for f in reply]
    brace = len(lines) > 1
    out += "\treply = shim_wait(&call, sizeof(*reply));\n\tif (reply)" + (" {\n" if brace else "\n")
    out += "".join(f"\t\t{line}\n" for line in lines) + ("\t}\n" if brace else "")
    return out + "\treturn shim_end(&call);\n}\n"


def header(api):
    out = text.head(
        "The frames of vcuda.api that are sent as they are described (protocol/generator/sent.py).\n"
        "What comes back is filled in where the call succeeded.",
        "VCUDA_SHIM_GENERATED_VCUDA_SEND_H",
        ["<cuda.h>", ""] + sorted(text.includes("vcuda_ops.h", "vcuda_wire.h") + ['"shim/engine/engine.h"']))
    return out + "".join(function(api, e) for e in crossing(api, "vcuda") if is_made(api, e)) + "\n#endif\n"
