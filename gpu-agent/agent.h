/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of process of gpu-agent share: the configuration and their entry points.
 *
 * The configuration is one flat struct without pointers.  The supervisor fills it in
 * (settings.c), and an exec'ed front or worker reads it from an inherited memfd: nobody parses
 * the file twice.  Of tokens it holds hashes, and for a worker not even those.
 */
#ifndef VCUDA_GPU_AGENT_AGENT_H
#define VCUDA_GPU_AGENT_AGENT_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/network.h"
#include "common/version.h"
#include "gpu-agent/handoff.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

#define AGENT_VERSION VCUDA_VERSION

/* Descriptors that an exec'ed process finds open besides 0, 1 and 2. */
#define AGENT_FD_SOCKET HANDOFF_FD /* worker: handoff.h; front: control.h */
#define AGENT_FD_CONFIG 4	   /* memfd with struct agent_config */
#define AGENT_FD_HTTP 5		   /* front: the control port's listening socket */
#define AGENT_FD_LISTEN 6	   /* front: those of config->listening from here on */

#define AGENT_EXIT_NO_EXEC 127 /* of a process that was to become one of ours */

#define AGENT_TOKEN_MAX 255 /* what struct session_hello can carry */
#define AGENT_TOKEN_HASH 32
#define AGENT_TOKENS 256
#define AGENT_NETWORK_TOKENS 8 /* one network's, while it changes them */
#define AGENT_SESSIONS_MAX 4096
#define AGENT_BYTES_MAX (1ull << 50) /* of device memory: more is a slip of the pen */
#define AGENT_PATH 1024

enum agent_port { LISTEN_SEND, LISTEN_RECV, LISTEN_CONTROL, AGENT_PORTS };

enum agent_driver {
	DRIVER_NVIDIA = 0,   /* libcuda.so.1 */
	DRIVER_SOFTWARE = 1, /* libvcuda-softgpu.so beside ../lib of the binary */
	DRIVER_FILE = 2,     /* a library by path */
};

/* NVIDIA's libraries that workers open (library_search.h). */
enum agent_library {
#define LIBRARY_ROW(id, ...) LIBRARY_##id,
#include "gpu-agent/generated/libraries.inc"
#undef LIBRARY_ROW
	AGENT_LIBRARIES
};

/* Who a token stands for, and what all with that name may have together. */
struct agent_tenant {
	uint8_t hash[AGENT_TOKEN_HASH]; /* SHA-256 of the token */
	char name[64];
	uint64_t bytes;	   /* of each device, 0 = no limit */
	uint32_t sessions; /* at once, 0 = no limit but max_sessions */
	uint32_t reserved;
};

/* Whose work goes first at a GPU (front/ledger/priority.h); 0: not said. */
enum agent_priority { PRIORITY_LOW = 1, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITIES };

/* What the configuration gives to a tenant, by its name (`tenants.NAME.…`). */
struct agent_limits {
	char name[64];	    /* "*": of those that are not named */
	uint64_t bytes;	    /* of each device, for all its sessions; 0 = no limit */
	uint32_t sessions;  /* at once; 0 = no limit but max_sessions */
	uint32_t gpu_share; /* thousandths of each GPU's time; 0 = not limited */
	uint32_t priority;  /* enum agent_priority: the highest that its sessions have */
	uint32_t reserved;
	uint64_t quotas[QUOTAS]; /* of its sessions together */
};
#define AGENT_LIMITS 256
#define AGENT_SHARE_WHOLE 1000u

struct agent_tokens {
	char file[AGENT_PATH]; /* where they are from; "" = the token's own key */
	uint32_t count;	       /* 0: none is asked for (insecure), or this is a worker */
	uint32_t made;	       /* the file is one of our own: nobody named one */
	struct agent_tenant list[AGENT_TOKENS];
};

/* A network of people who share GPUs (docs/PEERS.md): a tenant of its own, by its name. */
struct agent_network {
	struct network is;
	uint8_t tokens[AGENT_NETWORK_TOKENS][AGENT_TOKEN_HASH];
	uint32_t token_count;
	uint32_t dropped;	/* it is from networks_folder; else `networks:` has it */
	uint64_t leaving_until; /* it is left, and over by then (wait_now); 0: it is not */
};
#define AGENT_NETWORKS 16

/* Whose signed tokens are taken (gpu-agent/identity). */
struct agent_service_account {
	char keys[AGENT_PATH]; /* JWKS; "" = nobody's */
	char issuer[256], audience[256];
	bool by_account; /* a tenant is NAMESPACE/ACCOUNT; false: NAMESPACE */
};

struct agent_config {
	uint32_t magic; /* AGENT_CONFIG_MAGIC and sizeof, for the memfd */
	uint32_t size;

	/* For front and supervisor. */
	char address[256];		      /* "" = every address */
	char http_address[256];		      /* "" = as address */
	uint16_t ports[AGENT_PORTS];	      /* as configured: 0 = any */
	uint16_t bound[AGENT_PORTS];	      /* as bound; the supervisor fills it in */
	struct transport_listening listening; /* the supervisor's; with the front's numbers
						 (AGENT_FD_LISTEN) in the front */
	struct transport_tls tls;	      /* cert "": none */
	char peer_ca[TRANSPORT_PATH];	      /* who signs for other agents; "" = nobody */
	char peer_name[256];	    /* what their certificates must name; "" = their host */
	struct agent_tokens tokens; /* all zeros in a worker */
	struct agent_tokens http_tokens; /* of who may see every tenant; as tokens */
	struct agent_network networks[AGENT_NETWORKS]; /* the first network_count */
	uint32_t network_count;
	char networks_folder[AGENT_PATH]; /* of more, that come and go; "": none */
	bool networks_end;		  /* the agent ends when it is in no network any more */
	bool http_tenant_metrics;	  /* /metrics shows tenants to everybody */
	struct agent_service_account service_account;
	struct agent_limits limits[AGENT_LIMITS]; /* the first limit_count; as tokens */
	uint32_t limit_count;
	uint32_t expiry_grace_ms; /* a session may outlive what proves its client by so much */
	bool insecure;		  /* everybody is served */
	char peers[2048];	  /* agents that may be dialed (transport_allowed); "" = none */
	bool older_form;	  /* the command line that knows no token: `-n native` */
	uint32_t warm_workers;	  /* 0 = 1 with the software GPU, else 2 */
	uint32_t max_sessions;
	uint32_t max_sessions_per_pod;
	uint64_t memory_limit;	    /* bytes a session and device, 0 = the whole device */
	uint64_t memory_reserve;    /* bytes of each device that nobody is given */
	uint64_t lease_initial;	    /* bytes */
	uint32_t start_timeout_ms;  /* how long a client waits for a worker */
	uint32_t worker_silence_ms; /* a worker that says nothing for so long is ended */
	uint32_t drain_ms;
	uint32_t grace_ms; /* the longest that a session outlives its connections; 0: it does
			      not */
	uint32_t front_restarts;     /* how often the supervisor started the front again: … */
	uint32_t reloads;	     /* … because it was told to */
	char ready_file[AGENT_PATH]; /* "" = none */
	char health_socket[108];     /* a path as long as the kernel allows; "" = none */
	bool asking;		     /* of a running agent: --healthy, which reads no token */

	/* For the worker too. */
	bool compress_off, compress_always; /* payloads on their way; neither: where it pays */
	char congestion[16];		    /* of TCP; "": the kernel's default */
	uint32_t driver;		    /* enum agent_driver */
	char driver_path[AGENT_PATH];	    /* what to dlopen: a name or a path */
	char library_path[AGENT_PATH]; /* folders, ':' between; in LD_LIBRARY_PATH already */
	char libraries[AGENT_LIBRARIES][AGENT_PATH]; /* folders and files, ':' between */
	uint32_t gpu_count; /* 0 = all. In CUDA_VISIBLE_DEVICES already: the driver */
	uint16_t gpus[HANDOFF_DEVICES]; /* shows these only, so a worker takes all it sees */
	char cache_dir[AGENT_PATH];	/* modules by SHA-256 (cache/images.h); "": none */
	char compiled[AGENT_PATH];	/* compiled.h; "" = none. The supervisor fills it in */
	uint64_t host_memory;	     /* that a worker may have of the machine, 0 = no limit */
	uint64_t cache_bytes;	     /* the cache's limit */
	uint64_t upload_cache_bytes; /* of payloads that are kept by content; 0: none are */
	bool cache_shared;	     /* what one tenant brought is given to all */
	uint32_t launch_timeout_ms;  /* 0 = none */
	uint32_t warm_libraries; /* what a worker opens before its session (library_search.h) */
	struct agent_nccl {
		bool allowed; /* workers make connections, and have memory in common */
		char environment[AGENT_PATH]; /* NAME=VALUE, ':' between */
		uint32_t wait_ms;	      /* that a call waits for the other ranks */
	} nccl;
	struct agent_store {
		uint64_t bytes;			/* of tensors with names; 0: there are none */
		uint64_t bytes_per_namespace;	/* 0: as many as there are */
		uint64_t pool_bytes;		/* of memory that is kept for the next ones */
		uint32_t tensors_per_namespace; /* records, pooled memory among them */
		char registry[512]; /* unix:///PATH or tcp://HOST:PORT of a Redis; "": none */
		char registry_user[128]; /* of Redis' ACL; "": the default user */
		char registry_password_file[AGENT_PATH]; /* "": no password */
		char node[64];	   /* this agent's ID there; "": the host's name */
		char address[160]; /* where other agents find this one; HOST or HOST:PORT; "":
				      node */
		char socket[108];  /* for processes of this node; "": none */
		uint32_t user;	   /* that it becomes; 0: the agent's own */
	} store;
	bool sandbox_off;      /* sandbox.h */
	bool sandbox_required; /* a worker that lacks a part serves nobody */
	uint32_t log_level;    /* enum log_level; set before worker_main */
	uint32_t log_format;   /* enum log_format; likewise */
	bool pinned;	       /* worker_cpus counts; set before worker_main */
	cpu_set_t worker_cpus;
	uint32_t user_first,
		user_last;    /* of workers (supervisor/settings/users.h); 0: the agent's own */
	uint32_t worker_user; /* this worker's; the supervisor fills it in */
};
#define AGENT_CONFIG_MAGIC 0x47464341u /* "ACFG" */

/* The processes' main functions. They return the exit status. */
struct reload;
int supervisor_main(struct agent_config *config, const struct reload *reload);
int front_main(const struct agent_config *config);
int store_main(const struct agent_config *config);
int directory_main(const struct agent_config *config);
int uploads_main(const struct agent_config *config);

/* The worker (worker.c): opens config->driver_path, makes its contexts, says HANDOFF_READY or
 * HANDOFF_FAILED, serves one session and returns.  Called right after exec with affinity,
 * limits, environment and log level set; handoff_fd is a blocking SOCK_SEQPACKET, whose end of
 * file means that the agent is gone and the worker must exit. */
int worker_main(const struct agent_config *config, int handoff_fd);

#endif
