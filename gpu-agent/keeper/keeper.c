/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/keeper/keeper.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "gpu-agent/identity/key_set.h"
#include "gpu-agent/keeper/api.h"
#include "gpu-agent/keeper/certificate.h"

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define AUTHORITIES 256
#define PATH 300

struct keeper {
	const char *account;		      /* the folder with the ServiceAccount's token */
	const char *keys;		      /* NAMESPACE/CONFIGMAP; NULL: they are not kept */
	const char *secret;		      /* NAMESPACE/SECRET; NULL: no certificate is */
	const char *name;		      /* what agents are called */
	const char *authorities[AUTHORITIES]; /* NAMESPACE/CONFIGMAP each */
	int count;
	struct api api;
};

/* What is in the Secret, and where it belongs in STATE. */
struct kept_text {
	const char *key;
	char **text;
};
#define KEPT_TEXTS 7
static void kept_texts(struct certificate_state *state, struct kept_text list[KEPT_TEXTS])
{
	const struct kept_text all[KEPT_TEXTS] = {
		{"tls.crt", &state->agent.cert},
		{"tls.key", &state->agent.key},
		{"ca.crt", &state->ca.cert},
		{"ca.key", &state->ca.key},
		{"next-ca.crt", &state->next.cert},
		{"next-ca.key", &state->next.key},
		{"old-ca.crt", &state->old},
	};

	memcpy(list, all, sizeof(all));
}

/* Where "NAMESPACE/NAME" of that KIND is. */
static int object_path(
	char path[PATH], const char *kind, const char *object, struct error *error)
{
	static const char known[] = "-abcdefghijklmnopqrstuvwxyz0123456789.";
	const char *name = strchr(object, '/');
	size_t space = strspn(object, known);

	if (!name || !space || space != (size_t)(name - object) || space > 63 ||
		memchr(object, '.', space) || strchr("-.", name[1]) || strlen(name + 1) > 200 ||
		name[1 + strspn(name + 1, known)])
		return error_set(error, 0, "'%.100s' is not NAMESPACE/NAME of a %.*s", object,
			(int)strlen(kind) - 1, kind);
	snprintf(path, PATH, "/api/v1/namespaces/%.*s/%s/%s", (int)space, object, kind,
		name + 1);
	return 0;
}

/* The object, for cJSON_Delete; its data may be missing. */
static int get_object(struct keeper *k, const char *path, cJSON **object, struct error *error)
{
	char *text = NULL;
	int ret = api_get(&k->api, path, &text, error);

	if (ret)
		return ret;
	*object = cJSON_Parse(text);
	OPENSSL_cleanse(text, strlen(text));
	free(text);
	return *object ? 0 : error_set(error, EPROTO, "%s: the answer is no JSON", path);
}

static const char *text_at(const cJSON *object, const char *part, const char *key)
{
	const cJSON *inside = cJSON_GetObjectItemCaseSensitive(object, part);

	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(inside, key));
}

/* Writes TEXT under KEY of a ConfigMap, unless it stands there. */
static int keep_text(struct keeper *k, const char *where, const char *key, const char *text,
	struct error *error)
{
	cJSON *object = NULL, *data;
	char path[PATH];
	const char *now;
	int ret = object_path(path, "configmaps", where, error);

	if (!ret)
		ret = get_object(k, path, &object, error);
	if (ret)
		return ret;
	now = text_at(object, "data", key);
	if (!now || strcmp(now, text)) {
		data = cJSON_CreateObject();
		cJSON_AddStringToObject(data, key, text);
		ret = api_patch_data(&k->api, path,
			text_at(object, "metadata", "resourceVersion"), data, error);
		cJSON_Delete(data);
		if (!ret)
			printf("wrote %s of the ConfigMap %s\n", key, where);
	}
	cJSON_Delete(object);
	return ret;
}

/* What agents would not take is not given to them. */
static int keep_keys(struct keeper *k, struct error *error)
{
	struct key_set *keys;
	char *text;
	int ret = api_get(&k->api, "/openid/v1/jwks", &text, error);

	if (ret)
		return ret;
	ret = key_set_parse(&keys, text, strlen(text), error);
	if (!ret) {
		key_set_close(keys);
		ret = keep_text(k, k->keys, "jwks", text, error);
	} else {
		error_wrap(error, ret, "/openid/v1/jwks");
	}
	free(text);
	return ret;
}

static char *from_base64(const char *text)
{
	size_t n = strlen(text);
	int pad = n > 1 ? (text[n - 1] == '=') + (text[n - 2] == '=') : 0;
	unsigned char *out = calloc(1, n / 4 * 3 + 1);
	int got = out && n && n < 65536
			  ? EVP_DecodeBlock(out, (const unsigned char *)text, (int)n)
			  : -1;

	if (got < pad) {
		free(out);
		return NULL;
	}
	out[got - pad] = 0;
	return (char *)out;
}

static void add_base64(cJSON *data, const char *key, const char *text)
{
	size_t n = strlen(text);
	unsigned char *out = malloc(n / 3 * 4 + 5);

	if (out && EVP_EncodeBlock(out, (const unsigned char *)text, (int)n) >= 0)
		cJSON_AddStringToObject(data, key, (char *)out);
	free(out);
}

static int write_secret(struct keeper *k, const char *path, const char *version,
	struct certificate_state *state, struct error *error)
{
	struct kept_text list[KEPT_TEXTS];
	cJSON *data = cJSON_CreateObject();
	int ret;

	kept_texts(state, list);
	for (int i = 0; i < KEPT_TEXTS; i++) {
		if (*list[i].text)
			add_base64(data, list[i].key, *list[i].text);
		else
			cJSON_AddNullToObject(data, list[i].key); /* takes it away */
	}
	ret = api_patch_data(&k->api, path, version, data, error);
	cJSON_Delete(data);
	return ret;
}

static int keep_certificate(struct keeper *k, struct error *error)
{
	struct certificate_state state = {0};
	struct kept_text list[KEPT_TEXTS];
	cJSON *object = NULL;
	cleanup_free char *bundle = NULL;
	char path[PATH];
	bool changed;
	int ret = object_path(path, "secrets", k->secret, error);

	if (!ret)
		ret = get_object(k, path, &object, error);
	if (ret)
		return ret;
	kept_texts(&state, list);
	for (int i = 0; i < KEPT_TEXTS; i++) {
		const char *text = text_at(object, "data", list[i].key);

		*list[i].text = text ? from_base64(text) : NULL;
	}
	ret = certificate_renew(&state, k->name, time(NULL), &changed, error);
	if (!ret && changed) {
		ret = write_secret(
			k, path, text_at(object, "metadata", "resourceVersion"), &state, error);
		if (!ret)
			printf("wrote the certificate of %s, good for %lld days, into the "
			       "Secret "
			       "%s\n",
				k->name,
				(long long)(certificate_ends(state.agent.cert) - time(NULL)) /
					86400,
				k->secret);
	}
	bundle = ret ? NULL : certificate_bundle(&state, time(NULL));
	for (int i = 0; i < k->count && bundle && !ret; i++)
		ret = keep_text(k, k->authorities[i], "ca.crt", bundle, error);
	cJSON_Delete(object);
	certificate_state_free(&state);
	return ret;
}

static void print_usage(FILE *out)
{
	fprintf(out, "usage: gpu-agent keep [--keys NAMESPACE/CONFIGMAP]\n"
		     "       [--certificate NAMESPACE/SECRET --name DNS-NAME [--ca "
		     "NAMESPACE/CONFIGMAP]…]\n"
		     "       [--account FOLDER]\n");
}

static int usage(const char *what)
{
	fprintf(stderr, "gpu-agent keep: %s\n", what);
	print_usage(stderr);
	return 2;
}

static const char **place(struct keeper *k, const char *flag)
{
	if (!strcmp(flag, "--keys"))
		return &k->keys;
	if (!strcmp(flag, "--certificate"))
		return &k->secret;
	if (!strcmp(flag, "--name"))
		return &k->name;
	if (!strcmp(flag, "--account"))
		return &k->account;
	if (!strcmp(flag, "--ca") && k->count < AUTHORITIES)
		return &k->authorities[k->count++];
	return NULL;
}

static int done(int ret, const struct error *error)
{
	if (ret)
		fprintf(stderr, "gpu-agent keep: %s\n", error->text);
	return ret ? 1 : 0;
}

int keeper_main(int argc, char **argv)
{
	struct keeper k = {.account = ACCOUNT};
	struct error error;
	int status = 0;

	if (argc && !strcmp(argv[0], "--help")) {
		print_usage(stdout);
		return 0;
	}
	for (int i = 0; i < argc; i += 2) {
		const char **at = place(&k, argv[i]);

		if (!at || i + 1 == argc)
			return usage(at ? "a flag wants its value" : "an unknown flag");
		*at = argv[i + 1];
	}
	if (!k.keys && !k.secret)
		return usage("nothing is to be kept");
	if (!k.secret != !k.name || (k.count && !k.secret))
		return usage("--certificate, --name and --ca belong together");
	signal(SIGPIPE, SIG_IGN);
	if (api_open(&k.api, k.account, &error))
		return done(-1, &error);
	/* Each for itself: what fails of one is no reason to let the other end. */
	if (k.secret)
		status |= done(keep_certificate(&k, &error), &error);
	if (k.keys)
		status |= done(keep_keys(&k, &error), &error);
	api_close(&k.api);
	return status;
}
