#include "softgpu/ptx_build.h"
void ptx_decode_matrix(struct ptx_build *b)
{
	ptx_build_lacks(b, "%.*s", (int)b->st.text.n, b->st.text.p);
}
