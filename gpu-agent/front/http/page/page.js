// The status page: asks the agent's own /v1 every two seconds and shows what it says.
"use strict";

const EVERY_MS = 2000;
const PATIENCE_MS = 5000;
const at = (id) => document.getElementById(id);
let before = { time: 0, bytes: new Map() };
let sessions = [];
let order = { key: "started", down: false };
let answered = 0;
let timer = 0;
// Kept for this tab alone: an agent with several tenants shows each its own.
let token = sessionStorage.getItem("token") || "";

function make(tag, name, text) {
	const element = document.createElement(tag);
	if (name)
		element.className = name;
	if (text !== undefined)
		element.textContent = text;
	return element;
}

function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let unit = 0;
	while (n >= 1024 && unit < units.length - 1) {
		n /= 1024;
		unit++;
	}
	return `${unit && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

function span(seconds) {
	const s = Math.max(0, Math.floor(seconds));
	if (s < 60)
		return `${s} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${s % 60} s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

const count = (n) => n.toLocaleString("en");

const columns = [
	{ key: "id", label: "Session", show: (s) => s.id.slice(0, 8), name: "id" },
	{ key: "tenant", label: "Tenant", show: (s) => s.tenant },
	{ key: "pod", label: "Pod", show: (s) => s.pod, name: "wide pod" },
	{ key: "program", label: "Program", show: (s) => `${s.program} (${s.pid})`, name: "wide" },
	{ key: "state", label: "State", show: (s) => s.state },
	{ key: "started", label: "For", show: (s) => span(s.age), sort: (s) => s.age, name: "number" },
	{ key: "used", label: "Memory", show: (s) => bytes(s.used), sort: (s) => s.used, name: "number" },
	{ key: "launches", label: "Launches", show: (s) => count(s.launches), sort: (s) => s.launches, name: "number" },
	{ key: "in", label: "Received/s", show: (s) => bytes(s.rateIn), sort: (s) => s.rateIn, name: "number" },
	{ key: "out", label: "Sent/s", show: (s) => bytes(s.rateOut), sort: (s) => s.rateOut, name: "number" },
	{ key: "last_error", label: "Last error", show: (s) => s.last_error, name: "error" },
];

function showAgent(agent) {
	const state = at("state");
	const driver = agent.driver ? `, ${agent.driver}` : "";
	state.textContent = agent.ready ? "Ready" : agent.draining ? "Draining" : "Not ready";
	state.className = agent.ready ? "state good" : "state bad";
	at("facts").textContent = `version ${agent.version}, protocol ${agent.protocol}${driver}, for ` +
		`${span(agent.seconds)}; ${agent.sessions} of ${agent.max_sessions} sessions, ` +
		`${agent.workers_ready} ${agent.workers_ready === 1 ? "worker" : "workers"} ready`;
	const list = agent.conditions.map((c) => {
		const item = make("li", c.severity);
		item.append(make("b", "", c.name), c.text);
		return item;
	});
	if (!list.length)
		list.push(make("li", "", "Nothing to report."));
	// Only what changed is read out.
	const text = list.map((item) => item.textContent).join("\n");
	if (at("conditions").dataset.text !== text) {
		at("conditions").dataset.text = text;
		at("conditions").replaceChildren(...list);
	}
}

function showGpu(gpu) {
	const total = gpu.memory_total_bytes || 1;
	const parts = [
		["used", "used", gpu.memory_used_bytes],
		["leased", "leased", Math.max(0, gpu.memory_leased_bytes - gpu.memory_used_bytes)],
		["context", "contexts", gpu.memory_context_bytes || 0],
		["foreign", "others", gpu.memory_foreign_bytes || 0],
		["reserved", "reserved", gpu.memory_reserved_bytes || 0],
	];
	const card = make("article", "gpu");
	const bar = make("div", "memory");
	const legend = make("ul", "legend");
	card.append(make("h3", "", `GPU ${gpu.index}: ${gpu.name}`), make("p", "uuid", gpu.uuid));
	for (const [name, label, n] of parts) {
		const piece = make("span", name);
		piece.style.width = `${Math.min(100, (100 * n) / total)}%`;
		bar.append(piece);
		if (n || name === "used")
			legend.append(make("li", name, `${label} ${bytes(n)}`));
	}
	legend.append(make("li", "free", `free ${bytes(gpu.memory_free_bytes)} of ${bytes(total)}`));
	bar.setAttribute("role", "img");
	bar.setAttribute("aria-label", `Memory of GPU ${gpu.index}: ${bytes(gpu.memory_used_bytes)} of ${bytes(total)} used`);
	card.append(bar, legend);
	const meters = [];
	if (gpu.utilization_percent !== undefined)
		meters.push(`load ${gpu.utilization_percent} %`);
	if (gpu.power_watts !== undefined)
		meters.push(`${Math.round(gpu.power_watts)} W`);
	if (gpu.temperature_celsius !== undefined)
		meters.push(`${gpu.temperature_celsius} °C`);
	if (meters.length)
		card.append(make("p", "", meters.join(", ")));
	return card;
}

function compare(a, b) {
	const column = columns.find((c) => c.key === order.key);
	const [x, y] = column.sort ? [column.sort(a), column.sort(b)] : [a[column.key], b[column.key]];
	const first = x < y ? -1 : x > y ? 1 : (a.session || 0) - (b.session || 0);
	return order.down ? -first : first;
}

function showSessions() {
	const wanted = at("filter").value.trim().toLowerCase();
	const shown = sessions.filter((s) => !wanted ||
		[s.id, s.tenant, s.pod, s.program, s.state, s.last_error].join("\n").toLowerCase().includes(wanted));
	shown.sort(compare);
	at("rows").replaceChildren(...shown.map((s) => {
		const row = make("tr");
		for (const column of columns) {
			const cell = make("td", column.name, column.show(s));
			cell.dataset.label = column.label;
			if (column.key === "id")
				cell.title = s.id;
			row.append(cell);
		}
		return row;
	}));
	at("count").textContent = wanted ? `${shown.length} of ${sessions.length}` : `${sessions.length}`;
	at("none").hidden = shown.length > 0;
	at("none").textContent = sessions.length ? "No session fits the filter." : "No program uses a GPU of this agent.";
	document.querySelector("table").hidden = !shown.length;
	for (const cell of at("head").children) {
		if (cell.dataset.key === order.key)
			cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
		else
			cell.removeAttribute("aria-sort");
	}
	at("sort").value = `${order.key} ${order.down ? "down" : "up"}`;
}

function takeSessions(list) {
	const now = performance.now() / 1000;
	const seen = new Map();
	for (const s of list) {
		const old = before.bytes.get(s.id);
		const passed = now - before.time;
		s.age = Date.now() / 1000 - s.started;
		s.used = s.memory.reduce((sum, one) => sum + one.used_bytes, 0);
		s.rateIn = old ? Math.max(0, s.bytes_received - old[0]) / passed : 0;
		s.rateOut = old ? Math.max(0, s.bytes_sent - old[1]) / passed : 0;
		seen.set(s.id, [s.bytes_received, s.bytes_sent]);
	}
	before = { time: now, bytes: seen };
	sessions = list;
}

async function ask(path) {
	const headers = token ? { Authorization: `Bearer ${token}` } : {};
	const answer = await fetch(path, { cache: "no-store", headers, signal: AbortSignal.timeout(PATIENCE_MS) });
	if (answer.status === 401)
		throw Object.assign(new Error(await answer.text()), { refused: true });
	if (!answer.ok)
		throw new Error(`${path}: ${answer.status}`);
	return answer.json();
}

function showRefusal(text) {
	at("state").textContent = "A token is needed";
	at("state").className = "state bad";
	at("why").textContent = text;
	at("who").hidden = false;
	at("token").focus();
}

async function update() {
	try {
		const [agent, gpus, list] = await Promise.all([ask("/v1/agent"), ask("/v1/gpus"), ask("/v1/sessions")]);
		answered = Date.now();
		showAgent(agent);
		at("gpus").replaceChildren(...gpus.gpus.map(showGpu));
		takeSessions(list.sessions);
		showSessions();
		at("who").hidden = true;
		document.title = `${agent.ready ? "" : "! "}vcuda agent: ${list.sessions.length} sessions`;
	} catch (error) {
		if (error.refused) { // until another token is given
			showRefusal(error.message);
			timer = 0;
			return;
		}
		at("state").textContent = "The agent does not answer";
		at("state").className = "state bad";
	}
	at("age").textContent = answered ? `as of ${new Date(answered).toLocaleTimeString()}` : "";
	document.body.dataset.updates = Number(document.body.dataset.updates || 0) + 1;
	timer = document.hidden ? 0 : setTimeout(update, EVERY_MS);
}

function sortBy(key, down) {
	order = { key, down };
	showSessions();
}

function begin() {
	for (const column of columns) {
		const cell = make("th", column.name === "number" ? "number" : "");
		const button = make("button", "", column.label);
		cell.scope = "col";
		cell.dataset.key = column.key;
		button.type = "button";
		// Numbers are looked at from the largest down.
		button.addEventListener("click", () =>
			sortBy(column.key, order.key === column.key ? !order.down : Boolean(column.sort)));
		cell.append(button);
		at("head").append(cell);
		for (const way of ["up", "down"]) {
			const option = make("option", "", `${column.label} ${way === "up" ? "▲" : "▼"}`);
			option.value = `${column.key} ${way}`;
			at("sort").append(option);
		}
	}
	at("sort").addEventListener("change", () => {
		const [key, way] = at("sort").value.split(" ");
		sortBy(key, way === "down");
	});
	at("filter").addEventListener("input", showSessions);
	at("who").addEventListener("submit", (event) => {
		event.preventDefault();
		token = at("token").value.trim();
		sessionStorage.setItem("token", token);
		at("token").value = "";
		update();
	});
	document.addEventListener("visibilitychange", () => {
		if (!document.hidden && !timer && at("who").hidden)
			update();
	});
	update();
}

begin();
