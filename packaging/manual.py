#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages and completions of the commands, out of one source each: a command's own --help, the table of
keys in docs/, and the paragraphs of packaging/man.

    packaging/manual.py BIN OUT

BIN holds the built commands. OUT gets man/NAME.SECTION.gz, vcuda.bash and _vcuda. Needs go-md2man.
"""
import gzip
import itertools
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
COMMANDS = {"vcuda": 1, "vcuda-client": 8, "gpu-agent": 8}  # and the section of its page
# A page of keys: its section, the document, the heading above its table, where the file is, what it is.
FILES = {
    "gpu-agent.yaml": ("docs/AGENT.md", "## Configuration", "/etc/vcuda/agent.yaml", "configuration of gpu-agent"),
    "vcuda-client.yaml": ("docs/SIDECAR.md", "## Running it", "/etc/vcuda/client.yaml", "configuration of vcuda-client"),
}


def help_of(binary, *words):
    got = subprocess.run([binary, *words, "--help"], capture_output=True, text=True, timeout=10, check=True)
    return got.stdout.rstrip().split("\n")


def parsed(lines):
    """What it is, the forms of the command, and [option, text] of --help."""
    title = lines[0].partition(": ")[2].rstrip(".")
    forms, options, open_now = [], [], None
    for line in lines[1:]:
        option = re.match(r"^  (-\S.*?)(?:  +(.*))?$", line)
        usage = re.match(r"^(?:usage: |       |  |)((?:vcuda|vcuda-client|gpu-agent)\b.*)$", line)
        if usage:
            forms.append(list(re.match(r"(.*?)(?:   +(.*))?$", usage[1]).groups()))
            open_now = forms[-1]
        elif option and option[1].startswith("-"):
            options.append([option[1], option[2] or ""])
            open_now = options[-1]
        elif line.startswith("   ") and open_now:
            open_now[1] = f"{open_now[1] or ''} {line.strip()}".strip()
        else:
            open_now = None
    return title, forms, options


def verbs_of(name, binary):
    """The words that may stand first, as the forms of the command have them."""
    found = {form.split()[1].strip("[]") for form, _ in parsed(help_of(binary))[1] if re.match(rf"{name} \[?[a-z]+\]?( |$)", form)}
    return sorted(found)


def subverbs_of(name, verb, lines):
    """Where a verb takes another word first: vcuda peer join."""
    return sorted({found[1] for line in lines if (found := re.match(rf"{name} {verb} ([a-z]+)( |$)", line))})


def escaped(text):
    return re.sub(r"([*_<\[\]|\\])", r"\\\1", text)


def bold_words(form):
    """The words to type in bold, the others as they stand."""
    return " ".join(f"**{escaped(word)}**" if re.match(r"^-{0,2}[a-z][\w-]*$", word) else escaped(word) for word in form.split())


def definitions(pairs):
    return "\n".join(f"{term}\n: {text or '-'}\n" for term, text in pairs)


def paragraphs(name):
    with open(f"{HERE}/man/{name}.md") as file:
        return file.read()


def command_page(name, binary):
    title, forms, options = parsed(help_of(binary))
    longer = {}  # forms, as a verb's own help has them
    for word in verbs_of(name, binary) if name == "vcuda" else ():
        _, longer[word], more = parsed(["", *help_of(binary, word)])
        options += [[f"{word}: {option}", text] for option, text in more]
    own = paragraphs(name)
    end = own.index("\n# ")  # of its description
    text = [f"# NAME\n\n{name} - {title}\n", "# SYNOPSIS\n"]
    synopsis = [more for form, _ in forms for more, _ in longer.get(form.split()[1], [(form, "")])]
    text += [f"{bold_words(form)}\n" for form in synopsis]
    text.append(own[:end])
    told = [(bold_words(form), escaped(what)) for form, what in itertools.chain(forms, *longer.values()) if what]
    if told:
        text += ["# COMMANDS\n", definitions(told)]
    if options:
        text += ["# OPTIONS\n", definitions((f"**{escaped(option)}**", escaped(what)) for option, what in options)]
    return COMMANDS[name], "\n".join([*text, own[end:]])


def table_under(document, heading):
    """The rows of the first table of keys under a heading: [key, default, flag or nothing, meaning]."""
    with open(os.path.join(ROOT, document)) as file:
        text = file.read()
    text = text[text.index(f"\n{heading}\n"):]
    lines = text[text.index("\n| key |") + 1:].split("\n")
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        cells = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).strip() for cell in line.strip("|").split(" | ")]
        cells = [cell.strip("| ").strip() for cell in cells]
        rows.append([*cells[:2], cells[2] if len(cells) > 3 else "", cells[-1]])
    return rows


def file_page(name):
    document, heading, path, what = FILES[name]
    keys = []
    for key, default, flag, meaning in table_under(document, heading):
        more = "; ".join(filter(None, (f"default: {default}" if default else "", f"flag: {flag}" if flag else "")))
        keys.append((f"**{key.replace('`', '')}**", f"{meaning}{f' ({more})' if more else ''}"))
    return 5, "\n".join([f"# NAME\n\n{name} - {what}\n", f"# SYNOPSIS\n\n{path}\n", paragraphs(name), "# KEYS\n", definitions(keys)])


def write_page(out, name, section, text, version):
    page = subprocess.run(["go-md2man"], input=f"% {name} {section} \"\" \"vcuda {version}\" \"vcuda\"\n\n{text}",
                          capture_output=True, text=True, check=True, timeout=20).stdout
    with open(f"{out}/man/{name}.{section}.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write(page.encode())


def flags_of(texts):
    """Each flag as it is typed."""
    return sorted({flag for text in texts for flag in re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text)})


def completions(out, binaries):
    words = {name: sorted({*flags_of(option for option, _ in parsed(help_of(binary))[2]), "--help", "--version"})
             for name, binary in binaries.items()}
    verbs = {name: verbs_of(name, binary) for name, binary in binaries.items()}
    helps = {verb: help_of(binaries["vcuda"], verb) for verb in verbs["vcuda"]}
    flags = {verb: flags_of(lines) for verb, lines in helps.items()}
    subverbs = {verb: found for verb, lines in helps.items() if (found := subverbs_of("vcuda", verb, lines))}
    cases = "\n".join(f"\t\t{verb}) words='{' '.join((*subverbs.get(verb, ()), *found))}' ;;" for verb, found in flags.items())
    with open(f"{out}/vcuda.bash", "w") as file:
        file.write(f"""# Completion for bash of vcuda, vcuda-client and gpu-agent; made by packaging/manual.py.
_vcuda()
{{
	local cur=${{COMP_WORDS[COMP_CWORD]}} words i
	for ((i = 1; i < COMP_CWORD; i++)); do # a program and its own words stand behind --
		if [ "${{COMP_WORDS[i]}}" = -- ]; then
			compopt -o bashdefault -o default
			[ $((i + 1)) -eq "$COMP_CWORD" ] && mapfile -t COMPREPLY < <(compgen -c -- "$cur")
			return
		fi
	done
	case ${{COMP_WORDS[COMP_CWORD - 1]}} in
	*-file | --config | --socket | --cache-dir | --folder | join | push) compopt -o default; return ;;
	esac
	case ${{1##*/}} in
	vcuda-client) words='{' '.join(verbs['vcuda-client'] + words['vcuda-client'])}' ;;
	gpu-agent) words='{' '.join(words['gpu-agent'])}' ;;
	*)
		words='{' '.join(verbs['vcuda'])} --help --version'
		case ${{COMP_WORDS[1]}} in
{cases}
		esac
		[ "$COMP_CWORD" -eq 1 ] && words='{' '.join(verbs['vcuda'])} --help --version' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}
complete -F _vcuda vcuda vcuda-client gpu-agent
""")
    def rest(verb):
        return f"'2:verb:({' '.join(subverbs[verb])})' '*:file:_files'" if verb in subverbs else "'*::program:_normal'"

    zsh = "\n".join(f"\t\t{verb}) _arguments -s {' '.join(repr(flag) for flag in found)} {rest(verb)} ;;"
                    for verb, found in flags.items())
    with open(f"{out}/_vcuda", "w") as file:
        file.write(f"""#compdef vcuda vcuda-client gpu-agent
# Completion for zsh; made by packaging/manual.py.
case $service in
vcuda-client) _arguments '1:command:({' '.join(verbs['vcuda-client'])})' {' '.join(repr(w) for w in words['vcuda-client'])} ;;
gpu-agent) _arguments {' '.join(repr(w) for w in words['gpu-agent'])} ;;
*)
	if (( CURRENT == 2 )); then
		compadd -- {' '.join(verbs['vcuda'])} --help --version
	else
		case $words[2] in
{zsh}
		esac
	fi ;;
esac
""")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = sys.argv[1:]
    os.makedirs(f"{out}/man", exist_ok=True)
    with open(f"{ROOT}/common/version.h") as file:
        version = re.search(r'VCUDA_VERSION "(.*)"', file.read())[1]
    binaries = {name: os.path.join(folder, name) for name in COMMANDS}
    for name, binary in binaries.items():
        section, text = command_page(name, binary)
        write_page(out, name, section, text, version)
    for name in FILES:
        section, text = file_page(name)
        write_page(out, name, section, text, version)
    completions(out, binaries)


if __name__ == "__main__":
    main()
