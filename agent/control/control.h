/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket's protocol: one JSON object per line, both ways, over a Unix stream socket
 * (mode 0660, root and group `ax`; the agent checks SO_PEERCRED besides). File descriptors travel
 * with SCM_RIGHTS beside the line that speaks of them. A request has "op"; the last line of every
 * answer has "ok": true, or "ok": false with "errno" (a positive number) and "error" (one
 * sentence).
 *
 *  {"op":"launch","spec":SPEC,"pid":PID,"uid":U,"config":KEY?}
 *      -> {"ok":true,"id":7,"name":"web","ip4":"1.2.3.4"?,"ip6":..?,"net":"private","cgroup":PATH,
 *          "resolv_conf":TEXT?,"log":PATH?,
 *          "log_max":BYTES?,"spec":SPEC}     + fd: the cgroup's directory
 *      `spec` in the answer is the one that holds (defaults of the config's entry of that name
 *      filled in). `resolv_conf` is there for private apps, `log` and
 *      `log_max` (0: it goes to the journal instead) for detached ones.
 *      The app is undone if the connection closes before "started".
 *  {"op":"attach","id":7} + fd: the app's network namespace   (private apps only)
 *      -> {"ok":true}                  the network is ready, the command may be executed
 *      Nobody has to be in the namespace yet: the launcher makes its child meanwhile.
 *  {"op":"started","id":7,"pid":PID}   PID: the command's   -> {"ok":true}
 *      The launcher does not wait for the answer.
 *  {"op":"exited","id":7,"status":N}   N: as in $?          -> {"ok":true}
 *      A detached app's launcher writes N as record "exit" of the cgroup before it says so, for
 *      the case that no agent runs then.
 *
 *  {"op":"get","what":"apps"}     -> {"ok":true,"apps":[{"id","name","ip4"?,"ip6"?,"net","labels",
 *      "user"?,"pid","state":"starting|running|stopping|declared","since":UNIX_SECONDS,"command":[..],
 *      "service"?,"egress":bool,"egress_to":TEXT?,"restart","detached":bool,"wait_ms","splice",
 *      "splice_emulation":bool,"cgroup","restarts":N,"memory":BYTES,"cpus_milli":N,"pids":N,
 *      "volumes":[..],"read_only":bool,"expose":[TEXT]}]}   (expose: as in SPEC)
 *      With "all":true also those of other nodes: {"node","name","id","ip4"?,"ip6"?,"net","labels",
 *      "state":"running|unknown","since","ports":["80/tcp"]}; the others have "node" too, then.
 *  {"op":"get","what":"services"} -> {"ok":true,"services":[{"id","name","ip4"?,"ip6"?,
 *      "declared":bool,"added":true?,"strategy":NAME,"wait_ms",
 *      "expose":[TEXT],"ports":[{"port","target","proto"}],
 *      "backends":[{"app"?,"app_id"?,"address","port"?,"weight","state":"up|down|draining"?,"left_ms"?,"why"?}]}]}
 *      With "names":[TEXT] in the request (up to 64) only those of these names or ids.
 *      `address`: also FIRST-LAST, those in a row of a range that are alike. `state` is there for
 *      backends that are checked, `why` says what the last check met with, or why there is none.
 *  {"op":"get","what":"servers"}  -> {"ok":true,"servers":[{"app","app_id","proto":"tcp|udp",
 *      "address","port","since":UNIX_SECONDS,"sockets":N}]}
 *      With "all":true also those of other nodes, without since and sockets; all have "node", then.
 *  {"op":"get","what":"conns"}    -> {"ok":true,"conns":[{"proto":"tcp","state":"established",
 *      "local","local_port","local_name"?,"remote","remote_port","remote_name"?,"remote_node"?,
 *      "service"?,"service_address"?,"service_port"?,"sent","received","rtt_us","spliced"?,
 *      "not_spliced"?}]}
 *      Each connection once from every end that is under ax. `spliced`: bytes that this end sent
 *      from socket to socket; else why none, of those that are established.
 *  {"op":"get","what":"names"}    -> {"ok":true,"domain":"ax.internal","names":[{"name","ip4"?,
 *      "ip6"?,"kind":"app|service|declared"}]}
 *  {"op":"get","what":"policy"}   -> {"ok":true,"policy":[{"rule":N?,"name"?,"action":
 *      "allow|deny|log","audit":bool,"origin":"config|added|cluster|egress","text","hits":N?,
 *      "last":UNIX_SECONDS?}]}
 *      All rules in the order in which they are asked; `last`: when it was hit last. Those that
 * were added have a name and no number, here and wherever a RULE is said.
 *  {"op":"get","what":"interfaces"} -> {"ok":true,"interfaces":[{"name",
 *      "state":"active|absent|failed","rules":N,"triggers":bool,"why"?}]}
 *      Those of the config: absent ones are waited for; `triggers`: their triggers are read.
 *  {"op":"get","what":"nodes"} -> {"ok":true,"nodes":[{"name","address"?,"address6"?,
 *      "state":"up|away|unknown|partitioned|refused","blocks":[PREFIX],"apps":N,"since"?:UNIX_SECONDS,
 *      "seen"?:UNIX_SECONDS,"version"?,"self":bool,"clock"?:SECONDS,"ways"?:[{"prefix",
 *      "there":bool,"why"?}],"wireguard":{"key","port","handshake"?:UNIX_SECONDS,"received"?:BYTES,
 *      "sent"?:BYTES}?,"cluster"?}]}   (cluster: another one, in the name, too; seen: when it went
 * away; clock: that etcd's is ahead of its own at least; ways: of its blocks, as far as there is
 * one or is to be one; wireguard: its public key, and of a peer of this node's when it shook hands
 * last, 0: never)
 *  {"op":"status"} ->
 * {"ok":true,"version","instance","pid","since":UNIX_SECONDS,"config"?,"socket",
 *      "dns":{"address","port","domain","upstreams":[..]}?,"pool4":{"prefix","used","size"},
 *      "host_names":{"wanted":"resolved|resolvconf|off","state":"told|working|failed","why"?}?,
 *      "pool6"?,"apps":N,"services":N,"features":[{"name","on":bool,"why"?}],"counters":{NAME:N},
 *      "cluster":{"name","node","address"?,"address6"?,"no_address6"?,   (why there is none)
 *      "state":"connected|joining|refused|partitioned|failed",
 *      "member"?,"since"?:UNIX_SECONDS,"why"?,"lease"?,"blocks":[PREFIX],"current":bool,"nodes":N,
 *      "apps":N,"writes":N,"unwritten"?,"revision"?,"refused"?:N,"refused_why"?,"etcd":[URL],
 *      "ca"?,"cert"?,"key"?,"peers":[{"name","state":"connected|reading|unreachable|refused|failed","pool",
 *      "pool6"?,"nodes":N,"apps":N,"exported":N,"member"?,"why"?,"known"?:UNIX_SECONDS,"ways"}]?,
 *      "clock"?:SECONDS,        (paths; clock: as of nodes)
 *      "wireguard":{"device","port","mtu","key"}?}?,   (this node's, its public key)
 *      "interfaces":[as above]?,"probes":[{"name","state":"attached|waiting|failed","why"?}]?}
 *      Those of the config; waiting: for an app that does not run.
 *  {"op":"stop","app":"web" or "7","timeout_ms":10000} -> {"ok":true,"stopped":[{"id","name"}]}
 *      after they are gone. All apps of that name, or the one with that id.
 *  {"op":"enter","app":"web" or "7"} -> {"ok":true,"id":7,"name","cgroup":PATH,"pid":PID,
 *      "spec":SPEC}     + fd: the network namespace of a private app
 *      The app is not over before the connection is closed: until then its client puts a process
 *      into the cgroup.
 *  {"op":"remove","app":"web"} -> {"ok":true}
 *      The log of an app that has ended, and its next start. EBUSY: one of that name runs.
 *  {"op":"logs","app":"web" or "7"} -> {"ok":true,"logs":[{"id","name","path"}]}
 *  {"op":"apply","file":NAME,"text":TEXT,"dry_run":bool}, or instead of "text" "sealed":true + fd:
 * the text in sealed memory (text.h) -> {"ok":true,"diff":[{"action":
 *      "add|remove|change","kind":"app|service|agent|cluster|policy|trigger|xdp|probe","name","detail"}],
 *      "applied":bool,
 *      "warnings":[TEXT]}
 *      or {"ok":false,"errno":22,"error":..,"errors":[{"line","column","path","found","expected"}]}
 *  {"op":"service","action":"add|set|del","name":"shop","words":{KEY:VALUE}} -> {"ok":true}
 *      or {"op":"service","action":"drain","name","backend":"web","deadline_ms":N,"undo":bool}
 *      `words` (add, set): keys of the config's `services:` and what they are there.
 *  {"op":"policy","action":"add|set","name":"no-guests","rule":{"kind":"allow|deny|log|audit","words":
 *      {KEY:VALUE},"place":"first|last|before|after","at":RULE?}} -> {"ok":true}
 *      or {"op":"policy","action":"del","names":[NAME]}
 *      `words`: keys of the config's `policy: rules:`; `at`: a name, or a number in the config.
 * `set` takes any of the members; of what is null in `words` the rule says nothing any more.
 *  {"op":"explain","from":NAME,"to":NAME,"port":N,"proto":"tcp|udp"?} -> {"ok":true,
 *      "allowed":bool,"from","from_name"?,"to","to_name"?,"port","proto","verdicts":[{"allowed":bool,
 *      "hook","why":"rule|label|no-label|egress|host-access|loopback|dns|no-port|no-backend",
 *      "errno"?,"backend"?,"again"?,"decides"?:RULE,"audit"?:RULE,"log"?:RULE,"from_labels"?,
 *      "to_labels"?}]}      RULE: {"rule":N?,"name"?,"text"}
 *      NAME: an app's or its id, a service's (to), an address, or "host". A verdict for each
 *      backend; `again`: where the receiving side asks once more.
 *  {"op":"expect","text":TEXT} -> {"ok":true,"expectations":N,"failed":N,"unmet":[{"line",
 *      "why"}]}      TEXT: a file of expectations (config/expect.h), judged by what holds; the
 * first 1000 that do not are said.
 *  {"op":"events","verdicts":true?} -> {"ok":true}, then one line per event until the client
 * closes:
 *      {"event":"launch|exit|listen|unlisten|connect|accept|close|lost|health|drain|trigger",
 *       "time":UNIX_SECONDS.FRACTION,
 *       "app"?,"app_id"?,"local"?,"local_port"?,"remote"?,"remote_port"?,"remote_name"?,"service"?,
 *       "sent"?,"received"?,"duration_ms"?,"rtt_us"?,"status"?,"count"?}
 *      health: a backend became "state":"up|down", with "service", "local", "local_port", "why"?.
 *      drain: a backend is "state":"draining|drained|serving", with "service", "backend", "ended"?:
 *      connections that the deadline has ended.
 *      trigger: a command was started, with "trigger", "pid", "interface"; "remote" is what the
 *      datagram claims.
 *      With "verdicts" those who were refused instead, or would have been, and no others:
 *      {"event":"verdict","time":LAST,"first":TIME,"count":N,"verdict":"refused|audited",
 *       "why":"rule|labels|egress|host-access","hook":"connect|sk_lookup|fabric","proto",
 *       "app"?,"app_id"?,"local"?,"remote","remote_port","remote_name"?,"rule"?,"rule_name"?,"text"?}
 *      All that is remembered at first; then what is new at once, and how often every few seconds.
 *
 * SPEC: {"name"?,"ip4"?,"ip6"?,"labels":"k=v,..","user"?,"net":"private|host","env":[..],
 *        "command":[..],"directory"?,"wait_ms","egress":bool|"none"|"list",
 *        "egress_to":[TEXT]?,"egress_audit":bool?,"egress_source4"?,"egress_source6"?,"detach":bool,
 *        "restart":"no|on-failure|always","splice":"auto|on|off|forced","memory"?:BYTES,
 *        "cpus_milli"?,"pids"?,"volumes"?:["SOURCE:TARGET[:ro]",..],"read_only"?:bool,
 *        "expose"?:["[ADDRESS:|INTERFACE:]HOSTPORT:PORT/PROTO"]}; keys that
 * are missing have config.h's defaults.
 */
#ifndef AX_CONTROL_CONTROL_H
#define AX_CONTROL_CONTROL_H

#include <jansson.h>
#include "config/config.h"
#include "base/util.h"

#define CONTROL_LINE_MAX (8u << 20) /* longest line either side accepts */

/* --- both sides --- */
json_t *control_spec_to_json(const struct app_spec *s);
json_t *control_expose_to_json(const struct expose_list *l); /* a list of texts */
/* A string; null: no address. */
json_t *json_addr(const struct ax_addr *addr);
/* -EINVAL with the sentence in *e; unknown keys are errors. */
int control_spec_from_json(const json_t *j, struct app_spec *ret, struct error *e);

/* --- client side, blocking --- */
struct control_conn {
	int fd;
	char *buf; /* bytes read beyond the last line */
	size_t len, size;
};
int control_connect(const char *socket_path, struct control_conn *ret, struct error *e);
void control_close(struct control_conn *c);
/* Sends a request (takes no reference) with an optional descriptor (-1: none). */
int control_send(struct control_conn *c, const json_t *request, int fd, struct error *e);
/* Receives one line; *fd (when wanted) gets the descriptor that came with it or -1.
 * Returns -ECONNRESET with a sentence when the agent went away. */
int control_recv(struct control_conn *c, json_t **ret, int *fd, struct error *e);
/* Sends, receives one line, and turns "ok": false into its errno and sentence (*ret is then still
 * set if ret_on_error is wanted by passing a json_t * that is NULL; free with json_decref). */
int control_call(struct control_conn *c, const json_t *request, int send_fd, json_t **ret,
		 int *recv_fd, struct error *e);

/* The second half of control_call(), for who does something else meanwhile: `sent` is what
 * control_send() returned, and *e what it said. */
int control_answer(struct control_conn *c, int sent, json_t **ret, int *recv_fd, struct error *e);

/* --- line framing, shared with the agent's side and the fuzzer --- */
/* Parses one line (without newline) that must be a JSON object. */
int control_parse_line(const char *line, size_t len, json_t **ret, struct error *e);

#endif
