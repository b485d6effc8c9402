/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/identity/jwt.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu-agent/identity/text.h"

#define HEADER_MOST 512
#define CLAIMS_MOST 4096
#define SIGNATURE_MOST 1024
#define AUDIENCES_MOST 16
#define P256_HALF 32
#define TIME_MOST 9007199254740991.0 /* whole numbers up to there are exact in JSON */

struct part {
	const char *text;
	size_t n;
};

static int refuse(const char **why, const char *text)
{
	*why = text;
	return -EACCES;
}

/* HEADER.CLAIMS.SIGNATURE, each of them at least a character. */
static bool split(const char *token, size_t n, struct part part[3])
{
	const char *at = token, *end = token + n;

	for (int i = 0; i < 3; i++) {
		const char *dot = memchr(at, '.', (size_t)(end - at));

		if (!dot != (i == 2))
			return false;
		part[i] = (struct part){at, (size_t)((dot ? dot : end) - at)};
		if (!part[i].n)
			return false;
		at = dot ? dot + 1 : end;
	}
	return true;
}

static cJSON *json_of(const struct part *part, size_t most)
{
	char text[CLAIMS_MOST];
	ssize_t n = text_decode(part->text, part->n, text, most);

	return n > 0 ? text_json(text, (size_t)n) : NULL;
}

/* --- the signature ------------------------------------------------------------------------ */

/* JOSE writes both numbers of an ECDSA signature one behind the other, OpenSSL reads DER. */
static int to_der(const unsigned char *raw, unsigned char *der, size_t most)
{
	ECDSA_SIG *sig = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(raw, P256_HALF, NULL);
	BIGNUM *s = BN_bin2bn(raw + P256_HALF, P256_HALF, NULL);
	int n = -1;

	if (sig && r && s && ECDSA_SIG_set0(sig, r, s)) {
		if (i2d_ECDSA_SIG(sig, NULL) <= (int)most)
			n = i2d_ECDSA_SIG(sig, &der);
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(sig);
	return n;
}

static bool verify(EVP_PKEY *key, enum key_algorithm algorithm, const struct part *signed_part,
	const struct part *signature)
{
	unsigned char raw[SIGNATURE_MOST], der[2 * P256_HALF + 16], *use = raw;
	ssize_t n = text_decode(signature->text, signature->n, raw, sizeof(raw));
	EVP_MD_CTX *ctx;
	bool right;

	if (algorithm == KEY_RS256 && n != EVP_PKEY_get_size(key))
		return false;
	if (algorithm == KEY_ES256) {
		if (n != 2 * P256_HALF)
			return false;
		n = to_der(raw, der, sizeof(der));
		use = der;
	}
	ctx = EVP_MD_CTX_new();
	right = n > 0 && ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
		EVP_DigestVerify(ctx, use, (size_t)n, (const unsigned char *)signed_part->text,
			signed_part->n) == 1;
	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return right;
}

static int check_signature(struct key_set *keys, const struct part part[3], const char **why)
{
	static const char *const names[KEY_ALGORITHMS] = {
		[KEY_RS256] = "RS256", [KEY_ES256] = "ES256"};
	const struct part both = {part[0].text, part[0].n + 1 + part[1].n};
	cJSON *header = json_of(&part[0], HEADER_MOST);
	const char *alg = text_string(header, "alg"), *kid = text_string(header, "kid");
	int algorithm = 0, ret = 0;
	EVP_PKEY *key = NULL;

	while (alg && algorithm < KEY_ALGORITHMS && strcmp(alg, names[algorithm]))
		algorithm++;
	if (!alg || algorithm == KEY_ALGORITHMS)
		ret = refuse(why, "neither RS256 nor ES256");
	else if (cJSON_GetObjectItemCaseSensitive(header, "crit"))
		ret = refuse(why, "an extension that must be understood");
	else if (!kid || !(key = key_set_find(keys, kid, (enum key_algorithm)algorithm)))
		ret = refuse(why, "no such key (kid)");
	else if (!verify(key, (enum key_algorithm)algorithm, &both, &part[2]))
		ret = refuse(why, "the signature");
	cJSON_Delete(header);
	return ret;
}

/* --- the claims --------------------------------------------------------------------------- */

/* Unix time in *value. */
static bool time_of(const cJSON *claims, const char *name, int64_t *value)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(claims, name);

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
		item->valuedouble > TIME_MOST ||
		item->valuedouble != (double)(int64_t)item->valuedouble)
		return false;
	*value = (int64_t)item->valuedouble;
	return true;
}

static bool has_audience(const cJSON *claims, const char *wanted)
{
	const cJSON *aud = cJSON_GetObjectItemCaseSensitive(claims, "aud"), *one;
	bool found = false;

	if (cJSON_IsString(aud))
		return !strcmp(aud->valuestring, wanted);
	if (!cJSON_IsArray(aud) || cJSON_GetArraySize(aud) > AUDIENCES_MOST)
		return false;
	cJSON_ArrayForEach(one, aud)
	{
		if (!cJSON_IsString(one))
			return false;
		found |= !strcmp(one->valuestring, wanted);
	}
	return found;
}

/* As Kubernetes names things: of a-z, 0-9, - and, where DOTS, dots. */
static bool take_name(const cJSON *object, const char *name, char *out, size_t most, bool dots)
{
	const char *text = text_string(object, name);
	size_t n = text ? strlen(text) : 0;

	if (!n || n >= most ||
		text[strspn(text, dots ? "abcdefghijklmnopqrstuvwxyz0123456789-."
				       : "abcdefghijklmnopqrstuvwxyz0123456789-")] ||
		!strchr("abcdefghijklmnopqrstuvwxyz0123456789", text[0]))
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static int check_times(
	const cJSON *claims, int64_t now, struct jwt_subject *subject, const char **why)
{
	int64_t since = 0;

	if (!time_of(claims, "exp", &subject->expires))
		return refuse(why, "no time at which it expires (exp)");
	if (subject->expires + JWT_SKEW_S <= now)
		return refuse(why, "it has expired (exp)");
	if (cJSON_GetObjectItemCaseSensitive(claims, "nbf") && !time_of(claims, "nbf", &since))
		return refuse(why, "nbf is no time");
	if (since > now + JWT_SKEW_S)
		return refuse(why, "it is not valid yet (nbf)");
	return 0;
}

static int check_subject(const cJSON *claims, struct jwt_subject *subject, const char **why)
{
	const cJSON *kubernetes = cJSON_GetObjectItemCaseSensitive(claims, "kubernetes.io");
	const cJSON *account = cJSON_GetObjectItemCaseSensitive(kubernetes, "serviceaccount");
	const cJSON *pod = cJSON_GetObjectItemCaseSensitive(kubernetes, "pod");
	const char *sub = text_string(claims, "sub");
	char wanted[400];

	if (!take_name(kubernetes, "namespace", subject->namespace, sizeof(subject->namespace),
		    false) ||
		!take_name(account, "name", subject->account, sizeof(subject->account), true))
		return refuse(why, "no namespace and ServiceAccount in it (kubernetes.io)");
	snprintf(wanted, sizeof(wanted), "system:serviceaccount:%s:%s", subject->namespace,
		subject->account);
	if (!sub || strcmp(sub, wanted))
		return refuse(why, "sub is not its ServiceAccount");
	if (!take_name(pod, "name", subject->pod, sizeof(subject->pod), true) ||
		!take_name(pod, "uid", subject->pod_uid, sizeof(subject->pod_uid), false))
		return refuse(why, "it is not bound to a pod (kubernetes.io)");
	return 0;
}

int jwt_verify(struct key_set *keys, const struct jwt_expected *expected, const char *token,
	size_t n, int64_t now, struct jwt_subject *subject, const char **why)
{
	struct part part[3];
	const char *issuer;
	cJSON *claims;
	int ret;

	memset(subject, 0, sizeof(*subject));
	if (!split(token, n, part))
		return refuse(why, "not three parts with dots between");
	ret = check_signature(keys, part, why);
	if (ret < 0)
		return ret;
	claims = json_of(&part[1], CLAIMS_MOST);
	issuer = text_string(claims, "iss");
	if (!claims)
		ret = refuse(why, "the claims are not JSON as it should be");
	else if (!issuer || strcmp(issuer, expected->issuer))
		ret = refuse(why, "another issuer (iss)");
	else if (!has_audience(claims, expected->audience))
		ret = refuse(why, "for another audience (aud)");
	else if (!(ret = check_times(claims, now, subject, why)))
		ret = check_subject(claims, subject, why);
	cJSON_Delete(claims);
	if (ret < 0)
		memset(subject, 0, sizeof(*subject));
	return ret;
}
