/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of generated tables for functions that are there once for each type of numbers: their
 * names are P, the type's letter and Q.  Behind the name stands what is the same for all.  _T:
 * at the end the type; _TR, _RT: the type and that of its real part, or the other way round.
 * SEP stands between the rows.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_LETTERS_H
#define VCUDA_PROTOCOL_LIBRARIES_LETTERS_H

#define NOTHING()
#define COMMA() ,
#define SEMICOLON() ;

#define SD(SEP, ROW, P, Q, ...) ROW(P##S##Q, ##__VA_ARGS__) SEP() ROW(P##D##Q, ##__VA_ARGS__)
#define CZ(SEP, ROW, P, Q, ...) ROW(P##C##Q, ##__VA_ARGS__) SEP() ROW(P##Z##Q, ##__VA_ARGS__)
#define SDCZ(SEP, ROW, P, Q, ...)                                                              \
	SD(SEP, ROW, P, Q, ##__VA_ARGS__) SEP() CZ(SEP, ROW, P, Q, ##__VA_ARGS__)

#define SD_T(SEP, ROW, P, Q, ...)                                                              \
	ROW(P##S##Q, ##__VA_ARGS__, float) SEP() ROW(P##D##Q, ##__VA_ARGS__, double)
#define CZ_T(SEP, ROW, P, Q, ...)                                                              \
	ROW(P##C##Q, ##__VA_ARGS__, cuComplex)                                                 \
	SEP() ROW(P##Z##Q, ##__VA_ARGS__, cuDoubleComplex)
#define SDCZ_T(SEP, ROW, P, Q, ...)                                                            \
	SD_T(SEP, ROW, P, Q, ##__VA_ARGS__) SEP() CZ_T(SEP, ROW, P, Q, ##__VA_ARGS__)

#define SD_TR(SEP, ROW, P, Q, ...)                                                             \
	ROW(P##S##Q, ##__VA_ARGS__, float, float)                                              \
	SEP() ROW(P##D##Q, ##__VA_ARGS__, double, double)
#define CZ_TR(SEP, ROW, P, Q, ...)                                                             \
	ROW(P##C##Q, ##__VA_ARGS__, cuComplex, float)                                          \
	SEP() ROW(P##Z##Q, ##__VA_ARGS__, cuDoubleComplex, double)
#define SDCZ_TR(SEP, ROW, P, Q, ...)                                                           \
	SD_TR(SEP, ROW, P, Q, ##__VA_ARGS__) SEP() CZ_TR(SEP, ROW, P, Q, ##__VA_ARGS__)
#define CZ_RT(SEP, ROW, P, Q, ...)                                                             \
	ROW(P##C##Q, ##__VA_ARGS__, float, cuComplex)                                          \
	SEP() ROW(P##Z##Q, ##__VA_ARGS__, double, cuDoubleComplex)
#define SDCZ_RT(SEP, ROW, P, Q, ...)                                                           \
	SD_TR(SEP, ROW, P, Q, ##__VA_ARGS__) SEP() CZ_RT(SEP, ROW, P, Q, ##__VA_ARGS__)

#endif
