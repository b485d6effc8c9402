/* SPDX-License-Identifier: Apache-2.0
 *
 * One row an instruction: operands and the number that PTX says must come out.  Each row runs
 * with all lanes, then with the odd ones only, whose neighbours must keep what they had.
 *
 * a16 a32 a64, b.., c..: the low bits of the operands; the result lies in d16, d32, d64 or p,
 * as `result` says (h, w, d, p).
 */
#include "softgpu/ptx/tests/run_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define KEPT UINT64_C(0x5a5a5a5a5a5a5a5a)
#define NAN32 0x7fffffffu
#define ONE 0x3f800000u
#define ONE64 UINT64_C(0x3ff0000000000000)

struct row {
	char result;
	const char *text;
	uint64_t a, b, c, want;
};

static const struct row integers[] = {
	{'w', "add.s32 d32, a32, b32;", 0x7fffffff, 1, 0, 0x80000000},
	{'w', "add.sat.s32 d32, a32, b32;", 0x7fffffff, 1, 0, 0x7fffffff},
	{'w', "sub.sat.s32 d32, a32, b32;", 0x80000000, 1, 0, 0x80000000},
	{'h', "add.u16 d16, a16, b16;", 0xffff, 2, 0, 1},
	{'d', "sub.u64 d64, a64, b64;", 0, 1, 0, UINT64_MAX},
	{'w', "add.cc.u32 d32, a32, b32; addc.u32 d32, c32, 0;", 0xffffffff, 1, 7, 8},
	{'w', "sub.cc.u32 d32, a32, b32; subc.u32 d32, c32, 0;", 0, 1, 7, 6},
	/* The carry of a subtraction is 1 where nothing is borrowed. */
	{'w', "sub.cc.u32 d32, a32, b32; addc.u32 d32, c32, 0;", 0, 1, 7, 7},
	{'w', "sub.cc.u32 d32, a32, b32; addc.u32 d32, c32, 0;", 1, 1, 7, 8},
	{'w', "add.cc.u32 d32, a32, b32; subc.u32 d32, c32, 0;", 0xffffffff, 1, 7, 7},
	{'w', "add.cc.u32 d32, a32, b32; subc.u32 d32, c32, 0;", 1, 1, 7, 6},
	{'w', "sub.cc.u32 d32, a32, b32; subc.cc.u32 d32, b32, b32; addc.u32 d32, c32, 0;", 0,
		1, 7, 7},
	{'d', "sub.cc.u64 d64, a64, b64; subc.cc.u64 d64, c64, b64; subc.u64 d64, c64, 0;", 0,
		1, 1, 0},
	{'w', "mad.lo.cc.u32 d32, a32, a32, b32; madc.hi.u32 d32, a32, a32, c32;", 0xffffffff,
		0xffffffff, 3, 0xfffffffe + 4u},
	{'w', "mul.lo.s32 d32, a32, b32;", 0xffffffff, 5, 0, 0xfffffffb},
	{'w', "mul.hi.s32 d32, a32, b32;", 0xffffffff, 5, 0, 0xffffffff},
	{'w', "mul.hi.u32 d32, a32, b32;", 0xffffffff, 5, 0, 4},
	{'d', "mul.wide.s32 d64, a32, b32;", 0xffffffff, 5, 0, 0xfffffffffffffffb},
	{'d', "mul.wide.u32 d64, a32, b32;", 0xffffffff, 5, 0, 0x4fffffffb},
	{'d', "mul.hi.u64 d64, a64, b64;", UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1},
	{'d', "mul.hi.s64 d64, a64, b64;", UINT64_MAX, 2, 0, UINT64_MAX},
	{'w', "mad.lo.s32 d32, a32, b32, c32;", 7, 0xfffffffd, 1, 0xffffffec},
	{'d', "mad.wide.u16 d32, a16, b16, c32; cvt.u64.u32 d64, d32;", 0xffff, 0xffff, 2,
		0xfffe0003},
	{'w', "mul24.lo.u32 d32, a32, b32;", 0x1000003, 0x2000005, 0, 15},
	{'w', "mul24.hi.s32 d32, a32, b32;", 0xffffff, 2, 0, 0xffffffff},
	{'w', "div.s32 d32, a32, b32;", 0xfffffff9, 2, 0, 0xfffffffd},
	{'w', "rem.s32 d32, a32, b32;", 0xfffffff9, 2, 0, 0xffffffff},
	{'d', "div.u64 d64, a64, b64;", UINT64_MAX, 10, 0, UINT64_MAX / 10},
	{'d', "rem.u64 d64, a64, b64;", UINT64_MAX, 10, 0, 5},
	{'w', "sad.s32 d32, a32, b32, c32;", 0xffffffff, 4, 10, 15},
	{'w', "abs.s32 d32, a32;", 0xfffffff0, 0, 0, 16},
	{'w', "neg.s32 d32, a32;", 5, 0, 0, 0xfffffffb},
	{'w', "min.s32 d32, a32, b32;", 0xffffffff, 1, 0, 0xffffffff},
	{'w', "min.u32 d32, a32, b32;", 0xffffffff, 1, 0, 1},
	{'d', "max.s64 d64, a64, b64;", UINT64_MAX, 1, 0, 1},
	{'w', "add.u16x2 d32, a32, b32;", 0x0001ffff, 0x00010001, 0, 0x00020000},
	{'w', "add.s16x2 d32, a32, b32;", 0x7fffffff, 0x00010001, 0, 0x80000000},
	{'w', "min.u16x2 d32, a32, b32;", 0xffff0005, 0x00010007, 0, 0x00010005},
	{'w', "max.s16x2 d32, a32, b32;", 0xffff0005, 0x00010007, 0, 0x00010007},
	{'w', "min.s16x2 d32, a32, b32;", 0xffff0005, 0x00010007, 0, 0xffff0005},
	{'w', "min.s16x2.relu d32, a32, b32;", 0xffff0005, 0x00010007, 0, 0x00000005},
	{'w', "max.s32.relu d32, a32, b32;", 0xfffffff0, 0xfffffffe, 0, 0},
	{'w', "shl.b32 d32, a32, b32;", 1, 31, 0, 0x80000000},
	{'w', "shl.b32 d32, a32, b32;", 1, 32, 0, 0},
	{'w', "shr.u32 d32, a32, b32;", 0x80000000, 33, 0, 0},
	{'w', "shr.s32 d32, a32, b32;", 0x80000000, 33, 0, 0xffffffff},
	{'d', "shr.s64 d64, a64, b32;", UINT64_C(1) << 63, 70, 0, UINT64_MAX},
	{'w', "shf.l.wrap.b32 d32, a32, b32, c32;", 0x80000000, 1, 33, 3},
	{'w', "shf.l.clamp.b32 d32, a32, b32, c32;", 0x12345678, 1, 40, 0x12345678},
	{'w', "shf.r.wrap.b32 d32, a32, b32, c32;", 0x80000000, 1, 4, 0x18000000},
	{'w', "and.b32 d32, a32, b32;", 0xff00ff, 0xf0f0f0, 0, 0xf000f0},
	{'w', "not.b32 d32, a32;", 0xff, 0, 0, 0xffffff00},
	{'w', "cnot.b32 d32, a32;", 0, 0, 0, 1},
	{'w', "lop3.b32 d32, a32, b32, c32, 0x96;", 0xf0, 0xcc, 0xaa, 0x96},
	{'w', "bfe.u32 d32, a32, b32, c32;", 0xabcd1234, 8, 12, 0xd12},
	{'w', "bfe.s32 d32, a32, b32, c32;", 0x00000f00, 8, 4, 0xffffffff},
	{'d', "bfe.s64 d64, a64, b32, c32;", 0x80, 4, 4, 0xfffffffffffffff8},
	{'d', "bfe.u64 d64, a64, b32, c32;", 0xff00, 8, 0x101, 0xff},
	{'w', "bfe.u32 d32, a32, b32, c32;", 0xff00, 8, 0x101, 1},
	{'d', "bfi.b64 d64, a64, b64, 256, 4;", 5, 7, 0, 7},
	{'w', "bfi.b32 d32, a32, b32, 8, 4;", 0x5, 0xffffffff, 0, 0xfffff5ff},
	{'w', "bfind.u32 d32, a32;", 0x00100000, 0, 0, 20},
	{'w', "bfind.s32 d32, a32;", 0xffffffff, 0, 0, 0xffffffff},
	{'w', "bfind.shiftamt.u32 d32, a32;", 0x00100000, 0, 0, 11},
	{'w', "brev.b32 d32, a32;", 1, 0, 0, 0x80000000},
	{'w', "clz.b32 d32, a32;", 0, 0, 0, 32},
	{'w', "clz.b64 d32, a64;", 1, 0, 0, 63},
	{'w', "popc.b64 d32, a64;", 0xff00ff00ff, 0, 0, 24},
	{'w', "fns.b32 d32, a32, b32, c32;", 0xaaaaaaaa, 3, 2, 5},
	{'w', "fns.b32 d32, a32, b32, c32;", 0x1, 3, 1, 0xffffffff},
	{'w', "bmsk.clamp.b32 d32, a32, b32;", 4, 8, 0, 0xff0},
	{'w', "szext.wrap.s32 d32, a32, b32;", 0xff, 8, 0, 0xffffffff},
	{'w', "prmt.b32 d32, a32, b32, c32;", 0x33221100, 0x77665544, 0x0c15, 0x1155},
	{'w', "prmt.b32.f4e d32, a32, b32, c32;", 0x33221100, 0x77665544, 1, 0x44332211},
	{'w', "prmt.b32.rc8 d32, a32, b32, c32;", 0x33221100, 0, 2, 0x22222222},
	{'w', "dp4a.s32.s32 d32, a32, b32, c32;", 0xff020304, 0x01010101, 10, 18},
	{'w', "dp4a.u32.u32 d32, a32, b32, c32;", 0xff020304, 0x01010101, 10, 274},
	{'w', "dp2a.lo.s32.s32 d32, a32, b32, c32;", 0xffff0002, 0x01010503, 1, 2},
	{'w', "dp2a.hi.u32.u32 d32, a32, b32, c32;", 0x00010002, 0x07030000, 0, 13},
	{'w', "slct.u32.s32 d32, a32, b32, c32;", 1, 2, 0xffffffff, 2},
	{'p', "setp.lo.u32 p, a32, b32;", 1, 0xffffffff, 0, 1},
	{'p', "setp.lt.s32 p, a32, b32;", 1, 0xffffffff, 0, 0},
	{'p', "setp.ge.s64 p, a64, b64;", UINT64_MAX, 0, 0, 0},
	{'w', "set.eq.u32.s32 d32, a32, b32;", 4, 4, 0, 0xffffffff},
	{'w', "set.eq.f32.s32 d32, a32, b32;", 4, 4, 0, ONE},
	{'p', "setp.eq.s32 q, a32, b32; setp.ne.and.s32 p|r, a32, c32, q;", 4, 4, 4, 0},
	{'p', "setp.eq.s32 q, a32, b32; setp.ne.and.s32 r|p, a32, c32, q;", 4, 4, 4, 1},
	{'w', "setp.eq.s32 p, a32, b32; selp.b32 d32, a32, c32, p;", 4, 5, 9, 9},
	{'w', "mov.b64 {d32, e32}, a64;", 0x1122334455667788, 0, 0, 0x55667788},
	{'d', "mov.b64 d64, {a32, b32};", 0x11223344, 0x55667788, 0, 0x5566778811223344},
	{'w', "mad24.hi.sat.s32 d32, a32, b32, c32;", 0x7fffff, 0x7fffff, 0x7fffffff,
		0x7fffffff},
	{'w',
		"setp.eq.s32 q, a32, a32; lop3.and.b32 d32|p, a32, b32, c32, 0x80, q; selp.b32 "
		"d32, d32, 0, p;",
		0xf1, 0xcd, 0xab, 0x81},
	{'p', "setp.eq.s32 q, a32, a32; lop3.or.b32 _|p, a32, b32, c32, 0x80, !q;", 0xf0, 0x0f,
		0xff, 0},
	{'w', "cvt.pack.sat.u16.s32 d32, a32, b32;", 70000, 0xffffffff, 0, 0xffff0000},
	{'w', "cvt.pack.sat.s16.s32 d32, a32, b32;", 70000, 0xffff0000, 0, 0x7fff8000},
	{'w', "cvt.pack.sat.s8.s32.b32 d32, a32, b32, c32;", 200, 0xffffff00, 0x11223344,
		0x33447f80},
	{'w', "cvt.pack.sat.u4.s32.b32 d32, a32, b32, c32;", 7, 99, 0x11223344, 0x2233447f},
	{'h', "mov.b32 {e16, d16}, a32;", 0x11223344, 0, 0, 0x1122},
};

/* A register of which a part is taken has a name with %. */
static const struct row videos[] = {
	{'w', "vavrg2.s32.s32.s32 d32, a32, b32, c32;", 0x0003fffd, 0x0004fffe, 0, 0x0004fffd},
	{'w', "vavrg4.u32.u32.u32 d32, a32, b32, c32;", 0xff000102, 0xff010204, 0, 0xff010203},
	{'w', "vavrg4.u32.u32.u32.add d32, a32, b32, c32;", 0x00000102, 0x00000204, 100, 105},
	{'w', "vmad.u32.u32.u32 d32, a32, b32, c32;", 0xffffffff, 2, 5, 3},
	{'w', "vmad.u32.u32.u32.sat d32, a32, b32, c32;", 0xffffffff, 2, 5, 3},
	{'w', "vmad.u32.u32.u32.sat d32, a32, b32, c32;", 0x10000, 0x10000, 0, 0xffffffff},
	{'w', "vmad.u32.u32.u32.sat d32, a32, b32, c32;", 0xffffffff, 2, 1, 0},
	{'w', "vmad.u32.u32.u32.sat.shr7 d32, a32, b32, c32;", 0xffffffff, 2, 1, 0xffffffff},
	{'w', "vmad.u32.u32.u32.shr7 d32, a32, b32, c32;", 0xffffffff, 128, 0, 0xffffffff},
	{'w', "vmad.s32.s32.u32.sat d32, -a32, b32, c32;", 0xffffffff, 7, 0xfffffffe, 5},
	{'w', "vmad.s32.s32.u32.sat d32, a32, b32, -c32;", 0xffffffff, 7, 0xfffffffe,
		0xfffffffb},
	{'w', "vmad.u32.u32.u32.po.shr7 d32, a32, b32, c32;", 127, 2, 1, 2},
	{'w', "vadd.s32.s32.u32.sat d32, a32, b32;", 0x7fffffff, 1, 0, 0x7fffffff},
	{'w', "vadd.u32.u32.u32.add d32, a32, b32, c32;", 5, 6, 100, 111},
	{'w', "vsub.s32.u32.u32.min d32, a32, b32, c32;", 1, 5, 0xfffffff0, 0xfffffff0},
	{'w', "vabsdiff.u32.s32.s32 d32, a32, b32;", 0xfffffffd, 4, 0, 7},
	{'w', "mov.b32 %a, a32; mov.b32 %b, b32; vadd.s32.s32.u32 d32, %a.b1, %b.h1;", 0xff00,
		0x00050001, 0, 4},
	{'w', "mov.b32 %a, a32; vmin.u32.u32.u32 %a.b2, %a.b0, %a.b1, c32; mov.b32 d32, %a;",
		0x0a07, 0, 0x11223344, 0x11073344},
	{'w', "vshl.u32.u32.u32.sat.clamp d32, a32, b32;", 0x80000000, 40, 0, 0},
	{'w', "vshl.u32.u32.u32.sat.clamp d32, a32, b32;", 0x80000001, 40, 0, 0xffffffff},
	{'w', "vshl.s32.u32.u32.sat.clamp d32, a32, b32;", 2, 32, 0, 0x80000000},
	{'w', "vadd.u32.u32.u32.sat d32, a32, b32;", 0xffffffff, 2, 0, 1},
	{'w', "vsub.u32.u32.u32.sat d32, a32, b32;", 1, 2, 0, 0},
	{'w', "vadd.s32.s32.s32.min d32, a32, b32, c32;", 0x7fffffff, 1, 5, 0x80000000},
	{'w', "vshr.s32.s32.u32.wrap d32, a32, b32;", 0x80000000, 33, 0, 0xc0000000},
	{'w', "vset.s32.s32.lt.add d32, a32, b32, c32;", 0xffffffff, 1, 7, 8},
	{'w', "vabsdiff4.u32.u32.u32 d32, a32, b32, c32;", 0x01ff1080, 0x02002000, 0,
		0x01ff1080},
	{'w', "vabsdiff4.u32.u32.u32.add d32, a32, b32, c32;", 0x01ff1080, 0x02002000, 3,
		3 + 1 + 255 + 16 + 128},
	{'w', "vadd4.s32.s32.s32.sat d32, a32, b32, c32;", 0x7f80ff01, 0x01ff0101, 0,
		0x7f800002},
	{'w', "vsub2.u32.u32.u32.sat d32, a32, b32, c32;", 0x00050001, 0x00030002, 0,
		0x00020000},
	{'w', "vmax2.s32.s32.s32 d32, a32, b32, c32;", 0xffff0005, 0x0000fff0, 0, 0x00000005},
	{'w', "vset4.u32.u32.ge d32, a32, b32, c32;", 0x01020304, 0x01010504, 0, 0x01010001},
};

static const struct row floats[] = {
	{'w', "add.rn.f32 d32, a32, b32;", ONE, 0x33800000, 0, ONE},
	{'w', "add.rp.f32 d32, a32, b32;", ONE, 0x33800000, 0, ONE + 1},
	{'w', "add.rm.f32 d32, a32, b32;", ONE, 0xb2800000, 0, ONE - 1},
	{'w', "add.rz.f32 d32, a32, b32;", ONE, 0x33ffffff, 0, ONE},
	{'w', "add.ftz.f32 d32, a32, b32;", 1, 0, 0, 0},
	{'w', "add.f32 d32, a32, b32;", 1, 1, 0, 2},
	{'w', "add.sat.f32 d32, a32, b32;", ONE, ONE, 0, ONE},
	{'w', "add.f32 d32, a32, b32;", 0x7f800000, 0xff800000, 0, NAN32},
	{'w', "mul.f32 d32, a32, b32;", 0x40490fdb, 0x402df854, 0, 0x4108a2c0},
	{'w', "fma.rn.f32 d32, a32, b32, c32;", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
	{'w', "fma.rz.f32 d32, a32, b32, c32;", ONE, 0x33000000, ONE, ONE},
	{'w', "fma.rp.f32 d32, a32, b32, c32;", ONE, 0x33000000, ONE, ONE + 1},
	{'w', "div.rn.f32 d32, a32, b32;", ONE, 0x40400000, 0, 0x3eaaaaab},
	{'w', "div.rz.f32 d32, a32, b32;", ONE, 0x40400000, 0, 0x3eaaaaaa},
	{'w', "rcp.rn.f32 d32, a32;", 0x40400000, 0, 0, 0x3eaaaaab},
	{'w', "sqrt.rn.f32 d32, a32;", 0x40000000, 0, 0, 0x3fb504f3},
	{'w', "sqrt.rp.f32 d32, a32;", 0x40000000, 0, 0, 0x3fb504f4},
	{'w', "sqrt.rn.f32 d32, a32;", 0xbf800000, 0, 0, NAN32},
	{'w', "rsqrt.approx.f32 d32, a32;", 0x40800000, 0, 0, 0x3f000000},
	{'w', "ex2.approx.f32 d32, a32;", 0x40400000, 0, 0, 0x41000000},
	{'w', "lg2.approx.f32 d32, a32;", 0x41000000, 0, 0, 0x40400000},
	{'w', "sin.approx.f32 d32, a32;", 0, 0, 0, 0},
	{'w', "cos.approx.f32 d32, a32;", 0, 0, 0, ONE},
	{'w', "min.f32 d32, a32, b32;", NAN32, ONE, 0, ONE},
	{'w', "min.NaN.f32 d32, a32, b32;", NAN32, ONE, 0, NAN32},
	{'w', "min.f32 d32, a32, b32;", 0, 0x80000000, 0, 0x80000000},
	{'w', "max.f32 d32, a32, b32;", 0x80000000, 0, 0, 0},
	{'w', "neg.f32 d32, a32;", 0, 0, 0, 0x80000000},
	{'w', "abs.f32 d32, a32;", 0xbf800000, 0, 0, ONE},
	{'w', "copysign.f32 d32, a32, b32;", 0x80000000, ONE, 0, 0xbf800000},
	{'p', "testp.subnormal.f32 p, a32;", 1, 0, 0, 1},
	{'p', "testp.normal.f32 p, a32;", 0x80000000, 0, 0, 1},
	{'p', "testp.infinite.f32 p, a32;", 0x7f800000, 0, 0, 1},
	{'p', "setp.ltu.f32 p, a32, b32;", NAN32, ONE, 0, 1},
	{'p', "setp.lt.f32 p, a32, b32;", NAN32, ONE, 0, 0},
	{'p', "setp.ne.f32 p, a32, b32;", NAN32, ONE, 0, 0},
	{'p', "setp.neu.f32 p, a32, b32;", NAN32, ONE, 0, 1},
	{'p', "setp.eq.ftz.f32 p, a32, b32;", 1, 0, 0, 1},
	{'p', "setp.eq.f32 p, a32, b32;", 1, 0, 0, 0},
	{'d', "add.rn.f64 d64, a64, b64;", ONE64, 0x3ca0000000000000, 0, ONE64},
	{'d', "add.rp.f64 d64, a64, b64;", ONE64, 0x3ca0000000000000, 0, ONE64 + 1},
	{'d', "div.rn.f64 d64, a64, b64;", ONE64, 0x4008000000000000, 0, 0x3fd5555555555555},
	{'d', "div.rp.f64 d64, a64, b64;", ONE64, 0x4008000000000000, 0, 0x3fd5555555555556},
	{'d', "sqrt.rn.f64 d64, a64;", 0x4000000000000000, 0, 0, 0x3ff6a09e667f3bcd},
	{'d', "fma.rn.f64 d64, a64, b64, c64;", ONE64 + 1, ONE64 + 1, 0xbff0000000000002,
		0x3970000000000000},
};

static const struct row conversions[] = {
	{'w', "cvt.s32.s8 d32, a32;", 0x80, 0, 0, 0xffffff80},
	{'w', "cvt.u32.u8 d32, a32;", 0x1ff, 0, 0, 0xff},
	{'d', "cvt.s64.s32 d64, a32;", 0x80000000, 0, 0, 0xffffffff80000000},
	{'w', "cvt.sat.u8.s32 d32, a32;", 300, 0, 0, 255},
	{'w', "cvt.sat.u8.s32 d32, a32;", 0xffffffff, 0, 0, 0},
	{'w', "cvt.sat.s8.s32 d32, a32;", 0xffffff00, 0, 0, 0xffffff80},
	{'w', "cvt.rzi.s32.f32 d32, a32;", 0xbfc00000, 0, 0, 0xffffffff},
	{'w', "cvt.rni.s32.f32 d32, a32;", 0x40200000, 0, 0, 2},
	{'w', "cvt.rmi.s32.f32 d32, a32;", 0xbfc00000, 0, 0, 0xfffffffe},
	{'w', "cvt.rpi.s32.f32 d32, a32;", 0x3fc00000, 0, 0, 2},
	{'w', "cvt.rzi.s32.f32 d32, a32;", 0x7f800000, 0, 0, 0x7fffffff},
	{'w', "cvt.rzi.s32.f32 d32, a32;", NAN32, 0, 0, 0},
	{'w', "cvt.rzi.u32.f32 d32, a32;", 0xbf800000, 0, 0, 0},
	{'d', "cvt.rzi.s64.f64 d64, a64;", 0xc3f0000000000000, 0, 0, UINT64_C(1) << 63},
	{'d', "cvt.rzi.u64.f32 d64, a32;", NAN32, 0, 0, UINT64_C(1) << 63},
	{'w', "cvt.rzi.s32.f64 d32, a64;", 0x7ff8000000000000, 0, 0, 0x80000000},
	{'w', "cvt.rni.u32.f64 d32, a64;", 0x7ff8000000000000, 0, 0, 0x80000000},
	{'w', "cvt.rna.tf32.f32 d32, a32;", 0x7fc00000, 0, 0, 0x7fc00000},
	{'h', "cvt.rp.ftz.f16.f32 d16, a32;", 1, 0, 0, 1},
	{'h', "cvt.rm.f16.f64 d16, a64;", 0x8000000000000001, 0, 0, 0x8001},
	{'d', "cvt.rzi.u64.f32 d64, a32;", 0x7f000000, 0, 0, UINT64_MAX},
	{'w', "cvt.rn.f32.u32 d32, a32;", 0xffffffff, 0, 0, 0x4f800000},
	{'w', "cvt.rz.f32.u32 d32, a32;", 0xffffffff, 0, 0, 0x4f7fffff},
	{'w', "cvt.rn.f32.u64 d32, a64;", UINT64_MAX, 0, 0, 0x5f800000},
	{'w', "cvt.rm.f32.s64 d32, a64;", UINT64_C(1) << 63, 0, 0, 0xdf000000},
	{'w', "cvt.rn.f32.f64 d32, a64;", 0x3fd5555555555555, 0, 0, 0x3eaaaaab},
	{'w', "cvt.rz.f32.f64 d32, a64;", 0x3fd5555555555555, 0, 0, 0x3eaaaaaa},
	{'d', "cvt.f64.f32 d64, a32;", 1, 0, 0, 0x36a0000000000000},
	{'w', "cvt.rpi.f32.f32 d32, a32;", 0x3fc00000, 0, 0, 0x40000000},
	{'w', "cvt.sat.f32.f32 d32, a32;", 0x40000000, 0, 0, ONE},
	{'w', "cvt.ftz.f32.f32 d32, a32;", 5, 0, 0, 0},
	{'h', "cvt.rn.f16.f32 d16, a32;", 0x477ff000, 0, 0, 0x7c00},
	{'h', "cvt.rz.f16.f32 d16, a32;", 0x477ff000, 0, 0, 0x7bff},
	{'h', "cvt.rn.f16.f32 d16, a32;", 0x33000000, 0, 0, 0},
	{'h', "cvt.rn.f16.f32 d16, a32;", 0x33000001, 0, 0, 1},
	{'w', "cvt.f32.f16 d32, a16;", 0x0001, 0, 0, 0x33800000},
	{'w', "cvt.f32.f16 d32, a16;", 0xfc00, 0, 0, 0xff800000},
	{'h', "cvt.rn.bf16.f32 d16, a32;", 0x3f808000, 0, 0, 0x3f80},
	{'h', "cvt.rn.bf16.f32 d16, a32;", 0x3f818000, 0, 0, 0x3f82},
	{'w', "cvt.rn.f16x2.f32 d32, a32, b32;", ONE, 0x40000000, 0, 0x3c004000},
	{'w', "cvt.rn.relu.bf16x2.f32 d32, a32, b32;", 0xbf800000, 0x40000000, 0, 0x00004000},
	{'w', "cvt.rna.tf32.f32 d32, a32;", 0x3f801000, 0, 0, 0x3f802000},
	{'h', "cvt.rn.satfinite.e4m3x2.f32 d16, a32, b32;", 0x44000000, ONE, 0, 0x7e38},
	{'h', "cvt.rn.satfinite.relu.e4m3x2.f32 d16, a32, b32;", 0xbf800000, ONE, 0, 0x0038},
	{'h', "cvt.rn.satfinite.e5m2x2.f16x2 d16, a32;", 0x3c00c000, 0, 0, 0x3cc0},
	{'h', "cvt.rn.satfinite.relu.e4m3x2.f16x2 d16, a32;", 0x3c00c000, 0, 0, 0x3800},
	{'w', "cvt.rn.relu.f16x2.e4m3x2 d32, a16;", 0x38b8, 0, 0, 0x3c000000},
	{'h', "cvt.rni.f16.f16 d16, a16;", 0x4100, 0, 0, 0x4000},
	{'w', "cvt.rzi.s32.f16 d32, a16;", 0xc100, 0, 0, 0xfffffffe},
};

static const struct row halves[] = {
	{'p', "setp.eq.s32 q, a32, b32; setp.lt.and.f16x2 p|r, a32, b32, !q;", 0x40003c00,
		0x3c004000, 0, 1},
	{'p', "setp.eq.s32 q, a32, b32; setp.lt.and.f16x2 r|p, a32, b32, !q;", 0x40003c00,
		0x3c004000, 0, 0},
	{'h', "max.ftz.NaN.f16 d16, a16, b16;", 0x7e00, 0x3c00, 0, 0x7fff},
	{'h', "max.ftz.f16 d16, a16, b16;", 0x0001, 0x8000, 0, 0},
	{'h', "min.ftz.NaN.xorsign.abs.f16 d16, a16, b16;", 0xc000, 0x3c00, 0, 0xbc00},
	{'w', "cvt.rn.satfinite.f16x2.f32 d32, a32, b32;", 0x7f800000, 0xcb000000, 0,
		0x7bfffbff},
	{'w', "cvt.rz.relu.bf16x2.f32 d32, a32, b32;", 0x3f80ffff, 0xcb000000, 0, 0x3f800000},
	{'h', "add.f16 d16, a16, b16;", 0x3c00, 0x1000, 0, 0x3c00},
	{'h', "add.f16 d16, a16, b16;", 0x3c01, 0x1000, 0, 0x3c02},
	{'h', "mul.f16 d16, a16, b16;", 0x7bff, 0x4000, 0, 0x7c00},
	{'h', "fma.rn.f16 d16, a16, b16, c16;", 0x3c01, 0x3c01, 0xbc02, 0x0010},
	/* Just beside the middle of two numbers: further than a float tells. */
	{'h', "fma.rn.f16 d16, a16, b16, c16;", 0x3c01, 0x3bfe, 0x6801, 0x6801},
	{'h', "fma.rn.f16 d16, a16, b16, c16;", 0x3c16, 0x3bd5, 0x6800, 0x6801},
	{'h', "fma.rn.f16 d16, a16, b16, c16;", 0x3c16, 0xbbd5, 0xe800, 0xe801},
	{'w', "fma.rn.f16x2 d32, a32, b32, c32;", 0x3c163c01, 0x3bd53bfe, 0x68006801,
		0x68016801},
	{'h', "mul.f16 d16, a16, b16;", 0x0003, 0x3800, 0, 0x0002},
	{'h', "mul.f16 d16, a16, b16;", 0x8001, 0x3800, 0, 0x8000},
	{'h', "fma.rn.bf16 d16, a16, b16, c16;", 0x7f7f, 0x3f80, 0x7bff, 0x7f80},
	{'h', "fma.rn.bf16 d16, a16, b16, c16;", 0x0001, 0x0001, 0x8001, 0x8001},
	{'h', "fma.rn.relu.f16 d16, a16, b16, c16;", 0x3c00, 0xbc00, 0, 0},
	{'h', "fma.rn.oob.f16 d16, a16, b16, c16;", 0x7ff7, 0x3c00, 0x4000, 0},
	{'h', "fma.rn.oob.f16 d16, a16, b16, c16;", 0x3c00, 0x7ff7, 0xc000, 0},
	{'h', "fma.rn.oob.f16 d16, a16, b16, c16;", 0x7e00, 0x3c00, 0x4000, 0x7fff},
	{'h', "fma.rn.oob.f16 d16, a16, b16, c16;", 0x3c01, 0x3c01, 0xbc02, 0x0010},
	{'h', "fma.rn.oob.relu.f16 d16, a16, b16, c16;", 0x3c00, 0xbc00, 0, 0},
	{'h', "fma.rn.oob.relu.f16 d16, a16, b16, c16;", 0x7ff7, 0x7e00, 0x7e00, 0},
	{'h', "fma.rn.oob.bf16 d16, a16, b16, c16;", 0x7ff7, 0x7f80, 0x3f80, 0},
	{'h', "fma.rn.oob.bf16 d16, a16, b16, c16;", 0x3f80, 0x4000, 0x3f80, 0x4040},
	{'w', "fma.rn.oob.f16x2 d32, a32, b32, c32;", 0x7ff74000, 0x3c004000, 0x3c003c00,
		0x00004500},
	{'w', "fma.rn.oob.relu.bf16x2 d32, a32, b32, c32;", 0xbf807ff7, 0x3f803f80, 0x00003f80,
		0},
	{'h', "sub.sat.f16 d16, a16, b16;", 0x4400, 0x3c00, 0, 0x3c00},
	{'h', "min.f16 d16, a16, b16;", 0x7e00, 0x3c00, 0, 0x3c00},
	{'h', "max.NaN.f16 d16, a16, b16;", 0x7e00, 0x3c00, 0, 0x7fff},
	{'h', "neg.f16 d16, a16;", 0x3c00, 0, 0, 0xbc00},
	{'h', "ex2.approx.f16 d16, a16;", 0x4000, 0, 0, 0x4400},
	{'w', "add.f16x2 d32, a32, b32;", 0x3c004000, 0x3c003c00, 0, 0x40004200},
	{'w', "fma.rn.f16x2 d32, a32, b32, c32;", 0x3c004000, 0x40004000, 0x3c000000,
		0x42004400},
	{'w', "fma.rn.bf16x2 d32, a32, b32, c32;", 0x3f804000, 0x40004000, 0x3f800000,
		0x40404080},
	{'h', "add.bf16 d16, a16, b16;", 0x3f80, 0x3b80, 0, 0x3f80},
	{'p', "setp.lt.f16 p, a16, b16;", 0x3c00, 0x4000, 0, 1},
	{'p', "setp.eq.ftz.f16 p, a16, b16;", 0x03ff, 0x8001, 0, 1},
	{'p', "setp.eq.ftz.f16x2 r|p, a32, b32;", 0x03ff3c00, 0x80014000, 0, 1},
	{'w', "set.eq.ftz.u32.f16 d32, a16, b16;", 0x03ff, 0, 0, 0xffffffff},
	{'h', "mul.ftz.f16 d16, a16, b16;", 0x3bff, 0x0400, 0, 0},
	{'p', "setp.eq.f16x2 r|p, a32, b32;", 0x3c004000, 0x3c003c00, 0, 1},
	{'w', "set.gt.f16x2.f16x2 d32, a32, b32;", 0x3c004000, 0x3c003c00, 0, 0x00003c00},
	{'w', "set.eq.u32.bf16x2 d32, a32, b32;", 0x3f804000, 0x3f803f80, 0, 0xffff0000},
};

static uint64_t *memory;
static unsigned wrong;

static void run_row(const struct row *row)
{
	static const char frame[] =
		".visible .entry k(.param .u64 at, .param .u32 odd)\n{\n"
		".reg .b16 a16, b16, c16, d16, e16; .reg .b32 a32, b32, c32, d32, e32, t, o;\n"
		".reg .b64 a64, b64, c64, d64, at0, at1; .reg .pred p, q, r, s; .reg .b32 %%a, "
		"%%b;\n"
		"ld.param.u64 at0, [at]; ld.param.u32 o, [odd]; mov.u32 t, %%tid.x;\n"
		"ld.global.u64 a64, [at0]; ld.global.u64 b64, [at0+8]; ld.global.u64 c64, "
		"[at0+16];\n"
		"cvt.u32.u64 a32, a64; cvt.u32.u64 b32, b64; cvt.u32.u64 c32, c64;\n"
		"cvt.u16.u64 a16, a64; cvt.u16.u64 b16, b64; cvt.u16.u64 c16, c64;\n"
		"mov.u64 d64, 0x5a5a5a5a5a5a5a5a; mov.u32 d32, 0x5a5a5a5a; mov.u16 d16, "
		"0x5a5a;\n"
		"setp.ne.u32 p, t, t; not.b32 t, t; and.b32 t, t, o; setp.ne.u32 s, t, 0;\n"
		"@s bra OUT;\n%s\nOUT:\n%s\n"
		"mov.u32 t, %%tid.x; mad.wide.u32 at1, t, 8, at0; st.global.u64 [at1+32], "
		"d64;\n"
		"ret;\n}\n";
	const char *get = row->result == 'h'   ? "cvt.u64.u16 d64, d16;"
			  : row->result == 'w' ? "cvt.u64.u32 d64, d32;"
			  : row->result == 'p' ? "selp.b64 d64, 1, 0, p;"
					       : "";
	uint64_t kept = row->result == 'h'   ? (uint16_t)KEPT
			: row->result == 'w' ? (uint32_t)KEPT
			: row->result == 'p' ? 0
					     : KEPT;
	struct ptx_module *module;
	struct ptx_error error;
	char text[4096];
	struct {
		uint64_t at;
		uint32_t odd;
	} params = {(uint64_t)(uintptr_t)memory, 0};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), frame, row->text, get);
#pragma GCC diagnostic pop
	module = text_load("sm_90", text);
	memory[0] = row->a;
	memory[1] = row->b;
	memory[2] = row->c;
	for (params.odd = 0; params.odd < 2; params.odd++) {
		memset(memory + 4, 0, 32 * 8);
		if (text_launch(module, "k", 1, 32, 0, &params, &error)) {
			print_error("%s: line %d: %s\n", row->text, error.line, error.text);
			wrong++;
			break;
		}
		for (unsigned l = 0; l < 32; l++) {
			uint64_t want = params.odd && !(l & 1) ? kept : row->want;

			if (memory[4 + l] != want) {
				print_error("%s: lane %u has %#llx, not %#llx\n", row->text, l,
					(unsigned long long)memory[4 + l],
					(unsigned long long)want);
				wrong++;
				break;
			}
		}
	}
	ptx_module_free(module);
}

#define TABLE_TEST(table)                                                                      \
	static void test_##table(void **state)                                                 \
	{                                                                                      \
		(void)state;                                                                   \
		wrong = 0;                                                                     \
		for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++)                  \
			run_row(&table[k]);                                                    \
		assert_int_equal(wrong, 0);                                                    \
	}
TABLE_TEST(integers)
TABLE_TEST(videos)
TABLE_TEST(floats)
TABLE_TEST(conversions)
TABLE_TEST(halves)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_videos),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_conversions),
		cmocka_unit_test(test_halves),
	};

	text_init(1);
	memory = text_memory(4096);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
