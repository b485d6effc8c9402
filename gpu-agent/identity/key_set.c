/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/identity/key_set.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/identity/text.h"

#define FILE_MOST ((size_t)64 * 1024)
#define KEYS_MOST 32
#define NAME_MOST 128
#define MODULUS_LEAST 256 /* bytes: 2048 bits … */
#define MODULUS_MOST 1024 /* … to 8192 */
#define EXPONENT_MOST 4
#define COORDINATE 32 /* bytes, of P-256 */
#define LOOK_NS 1000000000ull

struct key {
	char name[NAME_MOST];
	enum key_algorithm algorithm;
	EVP_PKEY *key;
};

struct key_set {
	char path[4096]; /* "": from memory */
	struct stat seen;
	uint64_t looked_at;
	unsigned count;
	struct key at[KEYS_MOST];
};

static void forget(struct key_set *set)
{
	while (set->count)
		EVP_PKEY_free(set->at[--set->count].key);
}

/* --- one key ------------------------------------------------------------------------------ */

static ssize_t decode(const cJSON *jwk, const char *name, void *out, size_t most)
{
	const char *text = text_string(jwk, name);

	return text ? text_decode(text, strlen(text), out, most) : -EINVAL;
}

static EVP_PKEY *make(const char *type, OSSL_PARAM_BLD *builder)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
	EVP_PKEY *key = NULL;

	if (!ctx || !params || EVP_PKEY_fromdata_init(ctx) != 1 ||
		EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	OSSL_PARAM_free(params);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static EVP_PKEY *make_rsa(const cJSON *jwk)
{
	unsigned char modulus[MODULUS_MOST], exponent[EXPONENT_MOST];
	ssize_t n = decode(jwk, "n", modulus, sizeof(modulus));
	ssize_t e = decode(jwk, "e", exponent, sizeof(exponent));
	OSSL_PARAM_BLD *builder;
	BIGNUM *bn_n, *bn_e;
	EVP_PKEY *key = NULL;

	/* An even exponent, or 1, would make anything a signature. */
	if (n < MODULUS_LEAST || !modulus[0] || e < 1 || !(exponent[e - 1] & 1) ||
		(e == 1 && exponent[0] < 3))
		return NULL;
	builder = OSSL_PARAM_BLD_new();
	bn_n = BN_bin2bn(modulus, (int)n, NULL);
	bn_e = BN_bin2bn(exponent, (int)e, NULL);
	if (builder && bn_n && bn_e && !BN_is_one(bn_e) &&
		OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, bn_n) &&
		OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, bn_e))
		key = make("RSA", builder);
	BN_free(bn_n);
	BN_free(bn_e);
	OSSL_PARAM_BLD_free(builder);
	return key;
}

static EVP_PKEY *make_p256(const cJSON *jwk)
{
	unsigned char point[1 + 2 * COORDINATE] = {POINT_CONVERSION_UNCOMPRESSED};
	const char *curve = text_string(jwk, "crv");
	OSSL_PARAM_BLD *builder;
	EVP_PKEY *key = NULL;

	if (!curve || strcmp(curve, "P-256") ||
		decode(jwk, "x", point + 1, COORDINATE) != COORDINATE ||
		decode(jwk, "y", point + 1 + COORDINATE, COORDINATE) != COORDINATE)
		return NULL;
	builder = OSSL_PARAM_BLD_new();
	if (builder &&
		OSSL_PARAM_BLD_push_utf8_string(
			builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
		OSSL_PARAM_BLD_push_octet_string(
			builder, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)))
		key = make("EC", builder);
	OSSL_PARAM_BLD_free(builder);
	return key;
}

static bool says(const cJSON *jwk, const char *name, const char *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(jwk, name);

	return !item || (cJSON_IsString(item) && !strcmp(item->valuestring, value));
}

/* Whether it is one of ours; a name that is there already is a second key of that name, which
 * nobody could tell from the first. */
static bool add(struct key_set *set, const cJSON *jwk)
{
	const char *type = text_string(jwk, "kty"), *name = text_string(jwk, "kid");
	struct key *key = &set->at[set->count];

	if (!type || !name || !*name || strlen(name) >= NAME_MOST || !says(jwk, "use", "sig"))
		return false;
	for (unsigned i = 0; i < set->count; i++)
		if (!strcmp(set->at[i].name, name))
			return false;
	if (!strcmp(type, "RSA") && says(jwk, "alg", "RS256"))
		*key = (struct key){.algorithm = KEY_RS256, .key = make_rsa(jwk)};
	else if (!strcmp(type, "EC") && says(jwk, "alg", "ES256"))
		*key = (struct key){.algorithm = KEY_ES256, .key = make_p256(jwk)};
	else
		return false;
	ERR_clear_error();
	if (!key->key)
		return false;
	strcpy(key->name, name);
	set->count++;
	return true;
}

/* --- all of them -------------------------------------------------------------------------- */

static int parse(struct key_set *set, const char *text, size_t n, struct error *error)
{
	cJSON *root;
	const cJSON *keys, *jwk;

	while (n && strchr(" \t\r\n", text[n - 1]))
		n--;
	root = text_json(text, n);
	keys = cJSON_GetObjectItemCaseSensitive(root, "keys");
	cJSON_ArrayForEach(jwk, keys) if (set->count < KEYS_MOST) add(set, jwk);
	cJSON_Delete(root);
	if (!root)
		return error_set(error, 0, "no JSON Web Key Set");
	if (!set->count)
		return error_set(error, 0,
			"no key of RSA (2048 bits or more) or P-256 with a kid is in it");
	return 0;
}

static int read_file(struct key_set *set, struct error *error)
{
	cleanup_free char *text = malloc(FILE_MOST);
	cleanup_close int fd = open(set->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t got = 0;
	ssize_t n = 1;
	int ret;

	if (fd < 0 || fstat(fd, &set->seen) || !text)
		return error_set(error, errno, "%s", set->path);
	while (n > 0 && got < FILE_MOST) {
		n = read(fd, text + got, FILE_MOST - got);
		if (n < 0)
			return error_set(error, errno, "%s", set->path);
		got += (size_t)n;
	}
	if (got == FILE_MOST)
		return error_set(error, EFBIG, "%s", set->path);
	ret = parse(set, text, got, error);
	return ret ? error_wrap(error, ret, "%s", set->path) : 0;
}

int key_set_open(struct key_set **set, const char *path, struct error *error)
{
	struct key_set *made = calloc(1, sizeof(*made));
	int ret;

	if (!made)
		return error_set(error, ENOMEM, "%s", path);
	snprintf(made->path, sizeof(made->path), "%s", path);
	ret = read_file(made, error);
	if (ret < 0)
		key_set_close(made);
	else
		*set = made;
	return ret;
}

int key_set_parse(struct key_set **set, const char *text, size_t n, struct error *error)
{
	struct key_set *made = calloc(1, sizeof(*made));
	int ret = made ? parse(made, text, n, error) : error_set(error, ENOMEM, "keys");

	if (ret < 0)
		key_set_close(made);
	else
		*set = made;
	return ret;
}

void key_set_close(struct key_set *set)
{
	if (set)
		forget(set);
	free(set);
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that does not fit is tried again each second: it may be written just now. */
static void look_again(struct key_set *set)
{
	uint64_t now = wait_now();
	struct key_set *fresh;
	struct error error;
	struct stat st;

	if (!set->path[0] || now - set->looked_at < LOOK_NS)
		return;
	set->looked_at = now;
	if (stat(set->path, &st) || same(&st, &set->seen))
		return;
	if (key_set_open(&fresh, set->path, &error)) {
		log_warn("keys.bad", "text=\"%s; the keys of before stay good\"", error.text);
		return;
	}
	forget(set);
	memcpy(set->at, fresh->at, sizeof(set->at));
	set->count = fresh->count;
	set->seen = fresh->seen;
	free(fresh);
	log_info("keys.read", "file=\"%s\" keys=%u", set->path, set->count);
}

EVP_PKEY *key_set_find(struct key_set *set, const char *name, enum key_algorithm algorithm)
{
	look_again(set);
	for (unsigned i = 0; i < set->count; i++)
		if (set->at[i].algorithm == algorithm && !strcmp(set->at[i].name, name))
			return set->at[i].key;
	return NULL;
}
