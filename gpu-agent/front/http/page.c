/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of page/, as they lie there.
 */
#include "gpu-agent/front/http/page.h"

#include <string.h>

/* Each has its bytes between two symbols. */
#define PAGE_FILE(symbol, file)                                                                \
	__asm__(".section .rodata\n"                                                           \
		".global " #symbol "\n.hidden " #symbol "\n" #symbol ":\n"                     \
		".incbin \"gpu-agent/front/http/page/" file "\"\n"                             \
		".global " #symbol "_end\n.hidden " #symbol "_end\n" #symbol "_end:\n"         \
		".previous\n");                                                                \
	extern const char symbol[], symbol##_end[];

PAGE_FILE(page_html, "index.html")
PAGE_FILE(page_css, "page.css")
PAGE_FILE(page_js, "page.js")

bool page_find(const char *path, struct page_file *file)
{
	const struct page_file files[] = {
		{"/", "text/html; charset=utf-8", page_html,
			(size_t)(page_html_end - page_html)},
		{"/page.css", "text/css; charset=utf-8", page_css,
			(size_t)(page_css_end - page_css)},
		{"/page.js", "text/javascript; charset=utf-8", page_js,
			(size_t)(page_js_end - page_js)},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (strcmp(files[i].path, path))
			continue;
		*file = files[i];
		return true;
	}
	return false;
}
