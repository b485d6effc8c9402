/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/certificate.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

/* Of TYPE, the last one's text in *certificate. */
static void take_names(
	const GENERAL_NAMES *all, int type, struct transport_certificate *certificate)
{
	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);
		const ASN1_IA5STRING *text;
		int n;

		if (one->type != type)
			continue;
		text = type == GEN_URI ? one->d.uniformResourceIdentifier : one->d.dNSName;
		n = ASN1_STRING_length(text);
		certificate->names++;
		certificate->name[0] = 0;
		/* A NUL inside would be the end of another name. */
		if (n < (int)sizeof(certificate->name) &&
			!memchr(ASN1_STRING_get0_data(text), 0, (size_t)n)) {
			memcpy(certificate->name, ASN1_STRING_get0_data(text), (size_t)n);
			certificate->name[n] = 0;
		}
	}
}

bool certificate_read(const SSL *session, struct transport_certificate *certificate)
{
	X509 *shown = SSL_get0_peer_certificate(session);
	GENERAL_NAMES *names;
	struct tm end;

	*certificate = (struct transport_certificate){0};
	if (!shown)
		return true;
	if (ASN1_TIME_to_tm(X509_get0_notAfter(shown), &end) != 1)
		return false;
	certificate->expires = timegm(&end);
	names = X509_get_ext_d2i(shown, NID_subject_alt_name, NULL, NULL);
	if (names) {
		certificate->is_uri = true;
		take_names(names, GEN_URI, certificate);
		if (!certificate->names) {
			certificate->is_uri = false;
			take_names(names, GEN_DNS, certificate);
		}
	}
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	return certificate->expires > time(NULL);
}
