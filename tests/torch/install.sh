#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs two builds of PyTorch into CACHE/torch-2.11.0 and CACHE/torch-2.3.1, virtual
# environments of CPython 3.11, with none of NVIDIA's libraries but the four that need no GPU and
# stay a program's own: NVRTC, nvJitLink, NVTX and CUPTI.  1.4 GB to fetch; running it again is a
# no-op.  With --examples also what examples/pytorch want; with --peers that and what
# python/vcuda-peers wants.
#
#	tests/torch/install.sh CACHE [--examples|--peers] [2.15.0|2.11.0|2.3.1 ...]
set -euo pipefail

cache=${1:?usage: install.sh CACHE [--examples|--peers] [VERSION ...]}
shift
examples=
peers=
[ "${1-}" = --peers ] && examples=1 peers=1 && shift
[ "${1-}" = --examples ] && examples=1 && shift
versions=${*:-2.11.0 2.3.1}

python=
for candidate in /usr/bin/python3.11 python3.11 python3; do
	"$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null &&
		python=$candidate && break
done
[ -n "$python" ] || {
	echo "install.sh: no CPython 3.11 (the wheels are for it)" >&2
	exit 1
}

# What both need and what is Python only, but NumPy.
common="filelock==3.20.0 typing-extensions==4.15.0 sympy==1.13.3 mpmath==1.3.0 networkx==3.4.2
	jinja2==3.1.6 MarkupSafe==3.0.3 fsspec==2025.10.0 setuptools==80.9.0"

install() { # VERSION STAMP PACKAGE...
	local version=$1 name=$2 folder=$cache/torch-$1
	shift 2
	[ -e "$folder/.$name" ] && return
	exec 9>"$cache/.torch-$version.lock"
	flock 9
	[ -e "$folder/.$name" ] && return
	echo "torch: $name packages of $version into $folder"
	[ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
	"$folder/bin/pip" install -q --no-cache-dir --disable-pip-version-check --no-deps "$@"
	touch "$folder/.$name"
}

mkdir -p "$cache"
for version in $versions; do
	case $version in
	2.11.0)
		install 2.11.0 complete $common numpy==2.3.5 torch==2.11.0 \
			nvidia-cuda-nvrtc==13.0.88 nvidia-nvjitlink==13.0.88 nvidia-nvtx==13.0.85 \
			nvidia-cuda-cupti==13.0.85
		[ -z "$examples" ] || install 2.11.0 examples torchvision==0.26.0 pillow==12.0.0 \
			transformers==5.17.0 tokenizers==0.23.2 huggingface-hub==1.33.0 \
			safetensors==0.8.0 regex==2025.11.3 tqdm==4.67.1 pyyaml==6.0.3 \
			packaging==25.0 sentencepiece==0.2.1 hf-xet==1.2.0 httpx==0.28.1 \
			httpcore==1.0.9 anyio==4.11.0 h11==0.16.0 idna==3.11 certifi==2025.11.12 \
			sniffio==1.3.1 typer==0.20.0 click==8.3.1 shellingham==1.5.4 \
			matplotlib==3.10.7 contourpy==1.3.3 cycler==0.12.1 fonttools==4.60.1 \
			kiwisolver==1.4.9 pyparsing==3.2.5 python-dateutil==2.9.0.post0 six==1.17.0
		[ -z "$peers" ] || install 2.11.0 peers accelerate==1.15.0 psutil==7.2.2
		[ -z "$peers" ] || install 2.11.0 redis redis==8.1.0 async-timeout==5.0.1
		# Ray with its dashboard, jobs and Train.
		[ -z "$peers" ] || install 2.11.0 ray ray==2.60.0 \
			aiohappyeyeballs==2.7.1 aiohttp-cors==0.8.1 aiohttp==3.14.5 aiosignal==1.4.0 \
			annotated-types==0.8.0 attrs==26.1.0 cffi==2.1.1 charset-normalizer==3.5.3 \
			colorful==0.5.8 cryptography==50.0.2 distlib==0.4.4 frozenlist==1.8.0 \
			google-api-core==2.44.0 google-auth==2.63.0 googleapis-common-protos==1.76.0 \
			grpcio==1.85.3 jsonschema-specifications==2025.9.1 jsonschema==4.26.0 \
			msgpack==1.2.4 multidict==7.2.1 opencensus-context==0.1.3 opencensus==0.11.4 \
			opentelemetry-api==1.45.2 opentelemetry-exporter-prometheus==0.66b2 \
			opentelemetry-proto==1.45.2 opentelemetry-sdk==1.45.2 \
			opentelemetry-semantic-conventions==0.66b2 pandas==3.1.1 \
			platformdirs==4.14.8 prometheus-client==0.26.0 propcache==0.5.4 \
			proto-plus==1.29.0 protobuf==7.36.2 py-spy==0.4.3 pyarrow==26.0.1 \
			pyasn1-modules==0.4.2 pyasn1==0.6.5 pycparser==3.12 pydantic-core==2.46.5 \
			pydantic==2.13.5 referencing==0.37.0 requests==2.34.2 rpds-py==2026.9.1 \
			smart-open==9.0.2 tensorboardX==2.6.5 typing-inspection==0.4.5 \
			urllib3==2.8.0 virtualenv==20.35.4 wrapt==2.5.2 yarl==1.25.1
		# transformers serve.
		[ -z "$peers" ] || install 2.11.0 serving fastapi==0.128.0 starlette==0.50.0 uvicorn==0.40.0 \
			openai==1.109.1 rich==14.2.0 annotated-doc==0.0.4 annotated-types==0.8.0 \
			pydantic==2.13.5 pydantic-core==2.46.5 typing-inspection==0.4.5 \
			jiter==0.12.0 distro==1.9.0 markdown-it-py==4.0.0 pygments==2.19.2 mdurl==0.1.2 ;;
	2.15.0) # not among those that are installed unless asked for
		install 2.15.0 complete $common numpy==2.3.5 torch==2.15.0 \
			nvidia-cuda-nvrtc==13.2.86 nvidia-nvjitlink==13.2.86 nvidia-nvtx==13.2.86 \
			nvidia-cuda-cupti==13.2.86 cuda-bindings==13.5.0 cuda-pathfinder==1.9.1 ;;
	2.3.1)
		install 2.3.1 complete $common numpy==1.26.4 torch==2.3.1 \
			nvidia-cuda-nvrtc-cu12==12.1.105 nvidia-nvjitlink-cu12==12.1.105 \
			nvidia-nvtx-cu12==12.1.105 nvidia-cuda-cupti-cu12==12.1.105 ;;
	*)
		echo "install.sh: unknown version '$version'" >&2
		exit 2 ;;
	esac
done
