/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/keeper/certificate.h"

#include <errno.h>
#include <openssl/asn1.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DAY ((int64_t)86400)
#define AGENT_DAYS 90
#define AGENT_RENEW_DAYS 30
#define CA_DAYS 3650
/* Longer than any agent's certificate is good: it ends before its CA, whoever signs the next.
 */
#define CA_RENEW_DAYS 365
/* Clocks differ. */
#define BEFORE 3600

static char *text_of(BIO *bio)
{
	char *data, *text;
	long n = BIO_get_mem_data(bio, &data);

	text = n > 0 ? strndup(data, (size_t)n) : NULL;
	BIO_free(bio);
	return text;
}

static X509 *read_cert(const char *pem)
{
	BIO *bio = pem ? BIO_new_mem_buf(pem, -1) : NULL;
	X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

	BIO_free(bio);
	return cert;
}

static EVP_PKEY *read_key(const char *pem)
{
	BIO *bio = pem ? BIO_new_mem_buf(pem, -1) : NULL;
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;

	BIO_free(bio);
	return key;
}

static void wipe(char **secret)
{
	if (*secret)
		OPENSSL_cleanse(*secret, strlen(*secret));
	free(*secret);
	*secret = NULL;
}

static void pair_free(struct certificate_pair *pair)
{
	free(pair->cert);
	pair->cert = NULL;
	wipe(&pair->key);
}

void certificate_state_free(struct certificate_state *state)
{
	pair_free(&state->agent);
	pair_free(&state->ca);
	pair_free(&state->next);
	free(state->old);
	state->old = NULL;
}

int64_t certificate_ends(const char *pem)
{
	X509 *cert = read_cert(pem);
	struct tm tm;
	int64_t at = 0;

	if (cert && ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm))
		at = timegm(&tm);
	X509_free(cert);
	return at;
}

static bool extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX context;
	X509_EXTENSION *extension;
	bool done;

	X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	done = extension && X509_add_ext(cert, extension, -1);
	X509_EXTENSION_free(extension);
	return done;
}

static bool number(X509 *cert)
{
	unsigned char bytes[16];
	BIGNUM *n;
	bool done;

	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	bytes[0] &= 0x7f;
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	done = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return done;
}

/* ISSUER NULL: it signs itself, as a CA. */
static bool fill(X509 *cert, EVP_PKEY *key, X509 *issuer, const char *name, int64_t now)
{
	int days = issuer ? AGENT_DAYS : CA_DAYS;
	X509_NAME *subject = X509_get_subject_name(cert);
	char common[64], names[300];

	/* A common name has 64 characters at most, and nobody reads it. */
	snprintf(common, sizeof(common), "%s%.50s", issuer ? "" : "CA of ", name);
	snprintf(names, sizeof(names), "DNS:%s", name);
	if (!issuer)
		issuer = cert;
	return X509_set_version(cert, X509_VERSION_3) && number(cert) &&
	       X509_time_adj_ex(X509_getm_notBefore(cert), 0, -BEFORE, &(time_t){now}) &&
	       X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, &(time_t){now}) &&
	       X509_NAME_add_entry_by_txt(
		       subject, "CN", MBSTRING_ASC, (const unsigned char *)common, -1, -1, 0) &&
	       X509_set_issuer_name(cert, X509_get_subject_name(issuer)) &&
	       X509_set_pubkey(cert, key) &&
	       extend(cert, issuer, NID_subject_key_identifier, "hash") &&
	       extend(cert, issuer, NID_authority_key_identifier, "keyid") &&
	       (issuer == cert ? extend(cert, issuer, NID_basic_constraints,
					 "critical,CA:TRUE,pathlen:0") &&
					 extend(cert, issuer, NID_key_usage,
						 "critical,keyCertSign,cRLSign")
			       : extend(cert, issuer, NID_basic_constraints,
					 "critical,CA:FALSE") &&
					 extend(cert, issuer, NID_key_usage,
						 "critical,digitalSignature") &&
					 extend(cert, issuer, NID_ext_key_usage,
						 "serverAuth") &&
					 extend(cert, issuer, NID_subject_alt_name, names));
}

/* By CA, or by itself where that is NULL. */
static int make(struct certificate_pair *made, const struct certificate_pair *ca,
	const char *name, int64_t now, struct error *error)
{
	X509 *issuer = ca ? read_cert(ca->cert) : NULL, *cert = X509_new();
	EVP_PKEY *issuer_key = ca ? read_key(ca->key) : NULL, *key = EVP_EC_gen("P-256");
	BIO *cert_text = BIO_new(BIO_s_mem()), *key_text = BIO_new(BIO_s_mem());
	bool done = cert && key && cert_text && key_text && (!ca || (issuer && issuer_key)) &&
		    fill(cert, key, issuer, name, now) &&
		    X509_sign(cert, ca ? issuer_key : key, EVP_sha256()) &&
		    PEM_write_bio_X509(cert_text, cert) &&
		    PEM_write_bio_PKCS8PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL);
	struct certificate_pair fresh = {text_of(cert_text), text_of(key_text)};

	X509_free(issuer);
	X509_free(cert);
	EVP_PKEY_free(issuer_key);
	EVP_PKEY_free(key);
	if (!done || !fresh.cert || !fresh.key) {
		pair_free(&fresh);
		return error_set(error, ENOMEM, "a certificate for '%.100s'", name);
	}
	pair_free(made);
	*made = fresh;
	return 0;
}

/* Certificate and key belong together, and ISSUER has signed it; NULL: itself. */
static bool fits(const struct certificate_pair *pair, const char *issuer, const char *name)
{
	X509 *cert = read_cert(pair->cert), *by = read_cert(issuer ? issuer : pair->cert);
	EVP_PKEY *key = read_key(pair->key), *by_key = by ? X509_get0_pubkey(by) : NULL;
	bool good = cert && key && by_key && X509_check_private_key(cert, key) == 1 &&
		    X509_verify(cert, by_key) == 1 &&
		    (!name || X509_check_host(cert, name, 0, 0, NULL) == 1);

	X509_free(cert);
	X509_free(by);
	EVP_PKEY_free(key);
	return good;
}

static bool lasts(const struct certificate_pair *pair, int64_t now, int days)
{
	return certificate_ends(pair->cert) > now + days * DAY;
}

/* The one that follows signs from here on; clients believe the one before until it ends. */
static void promote(struct certificate_state *state)
{
	free(state->old);
	state->old = state->ca.cert;
	state->ca.cert = NULL;
	pair_free(&state->ca);
	state->ca = state->next;
	state->next = (struct certificate_pair){0};
}

int certificate_renew(struct certificate_state *state, const char *name, int64_t now,
	bool *changed, struct error *error)
{
	int ret;

	*changed = false;
	if (!fits(&state->ca, NULL, NULL) || !lasts(&state->ca, now, 0)) {
		ret = make(&state->ca, NULL, name, now, error);
		if (ret)
			return ret;
		pair_free(&state->next);
		*changed = true;
	}
	if (!fits(&state->agent, state->ca.cert, name) ||
		!lasts(&state->agent, now, AGENT_RENEW_DAYS)) {
		if (fits(&state->next, NULL, NULL) && lasts(&state->next, now, CA_RENEW_DAYS))
			promote(state);
		ret = make(&state->agent, &state->ca, name, now, error);
		if (ret)
			return ret;
		*changed = true;
	}
	/* Last: it signs from the next run of the Job on, when clients have it. */
	if (!lasts(&state->ca, now, CA_RENEW_DAYS) && !fits(&state->next, NULL, NULL)) {
		ret = make(&state->next, NULL, name, now, error);
		if (ret)
			return ret;
		*changed = true;
	}
	return 0;
}

char *certificate_bundle(const struct certificate_state *state, int64_t now)
{
	const char *next = state->next.cert ? state->next.cert : "";
	const char *old = certificate_ends(state->old) > now ? state->old : "";
	char *text = NULL;

	return asprintf(&text, "%s%s%s", state->ca.cert, next, old) < 0 ? NULL : text;
}
