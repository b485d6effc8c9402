/* SPDX-License-Identifier: Apache-2.0
 *
 * vcuda-top, which `vcuda top` starts: an agent's sessions in a terminal, refreshed, sorted by
 * a key.  A program of its own, so that nothing else needs ncurses.
 */
#include <errno.h>
#include <locale.h>
#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/top/view.h"
#include "common/log.h"
#include "common/wait.h"

#define TOP_LINE 512
#define TOP_LOOK_MS 100 /* how soon a key is heard */
#define TOP_MOST_SECONDS 3600

static const char usage[] =
	"vcuda top [--agent HOST[:PORT]] [--token-file FILE] [--every SECONDS] [--once]\n"
	"\n"
	"  --agent HOST[:PORT]  the agent's control port (127.0.0.1:9999)\n"
	"  --token-file FILE    a token of the agent's http.token_file, or a tenant's, which "
	"shows\n"
	"                       that tenant's sessions; else $VCUDA_TOKEN_FILE\n"
	"  --every SECONDS      between two looks (2)\n"
	"  --once               one look as plain text; rates are between two looks, one "
	"second\n"
	"                       apart\n"
	"\n"
	"  keys: q quit, h help, r reverse, arrows and page keys scroll; sort by g GPU share,\n"
	"  m memory, i received, o sent, l launches, t time, p pod\n";

static const char *const help[] = {
	"vcuda top: the sessions of one agent",
	"",
	"  g  sort by GPU share        m  by memory",
	"  i  by bytes received/s      o  by bytes sent/s",
	"  l  by launches              t  by time",
	"  p  by pod                   r  the other way round",
	"  up, down, page up, page down, home, end: scroll",
	"  q  quit",
	"",
	"  In a GPU's bar # is memory in use, - what is leased beyond it.",
	"",
	"any key: back",
};

struct top {
	struct view view;
	struct error error;
	bool failed, helping, quit;
	int first; /* of the sessions on the screen */
	uint64_t every_ns;
};

static int complain(const struct error *error, int status)
{
	fprintf(stderr, "vcuda: %s\n", error->text);
	return status;
}

/* --- the screen --------------------------------------------------------------------------- */

/* Line Y, cut to the screen. */
static void put(int y, int attributes, const char *text)
{
	if (y >= LINES)
		return;
	attrset(attributes);
	mvaddnstr(y, 0, text, COLS);
	if (attributes & (int)A_REVERSE)
		for (int x = (int)strlen(text); x < COLS; x++)
			mvaddch(y, x, ' ');
	attrset(A_NORMAL);
}

static int rows_for_sessions(const struct top *top)
{
	int rows = LINES - 3 - top->view.gpu_count;

	return rows > 0 ? rows : 0;
}

static void draw_help(void)
{
	for (int i = 0; i < (int)(sizeof(help) / sizeof(help[0])); i++)
		put(i, i ? A_NORMAL : A_BOLD, help[i]);
}

static void draw_sessions(struct top *top, int y)
{
	int rows = rows_for_sessions(top), last = top->view.count - rows;
	char line[TOP_LINE];

	if (top->first > last)
		top->first = last;
	if (top->first < 0)
		top->first = 0;
	view_line(NULL, line, sizeof(line));
	put(y++, A_REVERSE, line);
	for (int i = 0; i < rows && top->first + i < top->view.count; i++) {
		view_line(&top->view.sessions[top->first + i], line, sizeof(line));
		put(y++, A_NORMAL, line);
	}
	if (!top->view.count && !top->failed)
		put(y, A_NORMAL, "no program uses a GPU of this agent");
}

static void draw(struct top *top)
{
	char line[TOP_LINE];
	int y = 0;

	erase();
	if (top->helping) {
		draw_help();
		refresh();
		return;
	}
	view_title(&top->view, line, sizeof(line));
	put(y++, A_BOLD, line);
	put(y++, top->failed ? A_BOLD : A_NORMAL,
		top->failed ? top->error.text
			    : "q quit  h help  g m i o l t p sort  r reverse");
	for (int i = 0; i < top->view.gpu_count; i++) {
		view_gpu_line(&top->view.gpus[i], i, line, sizeof(line));
		put(y++, A_NORMAL, line);
	}
	draw_sessions(top, y);
	refresh();
}

/* --- keys --------------------------------------------------------------------------------- */

static void scroll_by(struct top *top, int lines)
{
	top->first += lines; /* draw_sessions keeps it in bounds */
}

static bool sort_key(struct top *top, int key)
{
	static const char keys[ORDERS + 1] = "gmioltp";
	const char *found = key > 0 && key < 128 ? strchr(keys, key) : NULL;

	if (!found)
		return false;
	top->view.order = (enum view_order)(found - keys);
	top->view.reverse = false;
	top->first = 0;
	view_sort(&top->view);
	return true;
}

static void handle(struct top *top, int key)
{
	if (key == 'q') {
		top->quit = true;
	} else if (key == KEY_RESIZE) {
		return; /* drawn anew */
	} else if (top->helping) {
		top->helping = false;
	} else if (key == 'h' || key == '?') {
		top->helping = true;
	} else if (key == 'r') {
		top->view.reverse = !top->view.reverse;
		view_sort(&top->view);
	} else if (!sort_key(top, key)) {
		switch (key) {
		case KEY_UP: scroll_by(top, -1); break;
		case KEY_DOWN: scroll_by(top, 1); break;
		case KEY_PPAGE: scroll_by(top, -rows_for_sessions(top)); break;
		case KEY_NPAGE: scroll_by(top, rows_for_sessions(top)); break;
		case KEY_HOME: top->first = 0; break;
		case KEY_END: top->first = top->view.count; break;
		default: break;
		}
	}
}

static volatile sig_atomic_t ended;

static void end(int signal_number)
{
	(void)signal_number;
	ended = 1;
}

static int run_screen(struct top *top)
{
	uint64_t next = wait_now() + top->every_ns;
	SCREEN *screen = newterm(NULL, stdout, stdin);

	if (!screen) {
		error_set(&top->error, 0,
			"top: the terminal '%s' is not known; --once prints plain text",
			getenv("TERM") ? getenv("TERM") : "");
		return complain(&top->error, 1);
	}
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGHUP, end);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	timeout(TOP_LOOK_MS);
	draw(top);
	while (!top->quit && !ended) {
		int key = getch();

		if (key != ERR)
			handle(top, key);
		else if (wait_now() < next)
			continue;
		if (wait_now() >= next) {
			top->failed = view_take(&top->view, &top->error) < 0;
			next = wait_now() + top->every_ns;
		}
		draw(top);
	}
	endwin();
	delscreen(screen);
	return 0;
}

static int run_once(struct top *top)
{
	char line[TOP_LINE];

	sleep(1);
	if (view_take(&top->view, &top->error) < 0)
		return complain(&top->error, 1);
	view_title(&top->view, line, sizeof(line));
	puts(line);
	for (int i = 0; i < top->view.gpu_count; i++) {
		view_gpu_line(&top->view.gpus[i], i, line, sizeof(line));
		puts(line);
	}
	view_line(NULL, line, sizeof(line));
	puts(line);
	for (int i = 0; i < top->view.count; i++) {
		view_line(&top->view.sessions[i], line, sizeof(line));
		puts(line);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct top top = {.every_ns = 2000000000ull};
	const char *agent = "127.0.0.1", *token_file = NULL;
	bool once = false;
	int status;

	setlocale(LC_ALL, "");
	log_open("top");
	for (int i = 1; i < argc; i++) {
		char *rest = NULL;
		double seconds;

		if (!strcmp(argv[i], "--help")) {
			fputs(usage, stdout);
			return 0;
		}
		if (!strcmp(argv[i], "--once")) {
			once = true;
		} else if (!strcmp(argv[i], "--agent") && i + 1 < argc) {
			agent = argv[++i];
		} else if (!strcmp(argv[i], "--token-file") && i + 1 < argc) {
			token_file = argv[++i];
		} else if (!strcmp(argv[i], "--every") && i + 1 < argc) {
			seconds = strtod(argv[++i], &rest);
			if (*rest || !(seconds >= 0.1 && seconds <= TOP_MOST_SECONDS)) {
				error_set(&top.error, 0,
					"top: --every takes 0.1 to %d seconds, not '%.40s'",
					TOP_MOST_SECONDS, argv[i]);
				return complain(&top.error, 2);
			}
			top.every_ns = (uint64_t)(seconds * 1e9);
		} else {
			error_set(&top.error, 0, "top: what is '%.80s'? vcuda top --help",
				argv[i]);
			return complain(&top.error, 2);
		}
	}
	if (view_open(&top.view, agent, token_file, &top.error) < 0 ||
		view_take(&top.view, &top.error) < 0) {
		view_close(&top.view);
		return complain(&top.error, 1);
	}
	if (!once && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		error_set(&top.error, 0, "top: this is no terminal; --once prints plain text");
		status = complain(&top.error, 1);
	} else {
		status = once ? run_once(&top) : run_screen(&top);
	}
	view_close(&top.view);
	return status;
}
