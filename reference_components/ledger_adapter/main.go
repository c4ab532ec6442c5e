// Command ledger_adapter serves ACP v1 over HTTP+JSON for the COBOL ledger. It translates and decides
// nothing: the ledger's own memory of references makes transfers BY_KEY, after a restart too.
package main

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

//go:embed card.json
var card json.RawMessage

const badRequest = "400 INVALID_ARGUMENT INVALID_REQUEST" // HTTP status, code, reason: protocol section 5
type failure struct{ class, message, effect string }      // class is such a triple
func fail(class, message string) (any, *failure)          { return nil, &failure{class, message, "NONE"} }

var refusals = map[string]string{ // the ledger's statuses; it did nothing, its message says why
	"11": "409 ALREADY_EXISTS IDEMPOTENCY_CONFLICT", "20": "404 NOT_FOUND UNKNOWN_ACCOUNT", "21": "404 NOT_FOUND UNKNOWN_ACCOUNT",
	"30": "400 FAILED_PRECONDITION INSUFFICIENT_FUNDS", "31": "400 FAILED_PRECONDITION CURRENCY_MISMATCH", "32": badRequest,
	"33": badRequest, "34": badRequest, "50": badRequest, "90": "429 RESOURCE_EXHAUSTED JOURNAL_FULL"}

// layouts says which argument fills which field of the ledger's record; forms checks it as JSON text.
var layouts = map[string][6]string{"ledger.balance": {"BALANCE", "account"}, "ledger.fee": {"FEE", 4: "amount", 5: "kind"},
									"ledger.transfer": {"TRANSFER", "from_account", "to_account", "currency", "amount"}}
var amount = regexp.MustCompile(`^([0-9]{1,11})(?:\.([0-9]{1,2}))?$`) // its digits, never a float
var account, word = regexp.MustCompile(`^"[0-9]{10}"$`), regexp.MustCompile(`^"[A-Z]{3,8}"$`)
var forms = [6]*regexp.Regexp{nil, account, account, word, amount, word}

type fields map[string]json.RawMessage          // exact names: Go's structs would ignore case
func (m fields) get(name string, into any) bool { return json.Unmarshal(m[name], into) == nil }

// record lays out a request of 120 characters, or names the argument that is wrong.
func record(layout [6]string, args fields, reference, text string) (line, wrong string) {
	var v [6]string
	for i, name := range layout[1:] {
		if v[i+1] = strings.Trim(string(args[name]), `"`); name != "" && !forms[i+1].Match(args[name]) {
			return "", name
		}
	}
	parts := append(amount.FindStringSubmatch(v[4]), "", "", "")
	minor, _ := strconv.ParseInt(parts[1]+(parts[2] + "00")[:2], 10, 64)
	return fmt.Sprintf("%-8s%-10s%-10s%-3.3s%013d%-8s%-32s%-36s\n", layout[0], v[1], v[2], v[3], minor, v[5], reference, text), ""
}

// output turns a reply into the action's output; money goes from digits to digits.
func output(action, reply string) any {
	money := func(digits string) json.RawMessage {
		n, _ := strconv.ParseInt(digits, 10, 64)
		return json.RawMessage(fmt.Sprintf("%d.%02d", n/100, n%100)) // the ledger knows no overdraft
	}
	switch entry, _ := strconv.Atoi(reply[117:126]); action {
	case "ledger.balance":
		return map[string]any{"account": reply[40:50], "currency": reply[60:63], "balance": money(reply[89:103])}
	case "ledger.transfer":
		return map[string]any{"from_account": reply[40:50], "to_account": reply[50:60], "currency": reply[60:63],
			"amount": money(reply[63:76]), "balance": money(reply[89:103]), "entry": entry}
	}
	return map[string]any{"amount": money(reply[63:76]), "fee": money(reply[76:89])}
}

var mu sync.Mutex                                                                      // one call at a time: a repeat waits for the first, and so does a cancel
var ledger, requests, replies = (*exec.Cmd)(nil), io.Writer(nil), (*bufio.Reader)(nil) // the one COBOL process and its pipes
var numbers, effects = map[string]int64{}, map[string]string{}                         // by call_id: highest attempt, what it did

// ask sends a record and reads the reply; "" = the ledger failed or was killed as too slow: the next ask starts it.
func ask(line string, timeout time.Duration) (reply string) {
	if ledger == nil {
		ledger = &exec.Cmd{Path: os.Getenv("LEDGER_PROGRAM"), Stderr: os.Stderr}
		requests, _ = ledger.StdinPipe()
		pipe, _ := ledger.StdoutPipe()
		if replies = bufio.NewReader(pipe); ledger.Start() != nil {
			ledger = nil
			return ""
		}
	}
	process := ledger.Process
	defer time.AfterFunc(timeout, func() { _ = process.Kill() }).Stop()
	if _, err := io.WriteString(requests, line); err == nil {
		reply, _ = replies.ReadString('\n')
	}
	if len(reply) != 201 || reply[8:10] == "91" {
		_, _ = process.Kill(), ledger.Wait()
		ledger, reply = nil, ""
	}
	return reply
}

func execute(r *http.Request, m fields) (any, *failure) {
	var about, args fields
	var number, timeout int64
	var action, id, digest, session, lineage string
	switch _, _ = m.get("arguments", &args), m.get("action", &action); { // no object: then its first argument is missing
	case !m.get("context", &about) || !about.get("call_id", &id) || !about.get("session_id", &session) || !about.get("lineage_id", &lineage) ||
		len(id)*len(session)*len(lineage)*len(action) == 0 || !about.get("attempt", &number) || !about.get("timeout_ms", &timeout) ||
		number < 1 || timeout < 1 || !about.get("body_digest", &digest) || len(digest) != 64:
		return fail(badRequest, "it needs action and context: session_id, lineage_id, call_id, attempt, timeout_ms, body_digest (64 hex digits)")
	case r.Header.Get("idempotency-key") != "" && r.Header.Get("idempotency-key") != id:
		return fail(badRequest, "the header idempotency-key differs from context.call_id")
	case layouts[action][0] == "":
		return fail("404 NOT_FOUND NOT_FOUND", "there is no action "+action)
	}
	line, wrong := record(layouts[action], args, fmt.Sprintf("%x", sha256.Sum256([]byte(id)))[:32], digest[:32])
	deadline := time.Now().Add(time.Duration(timeout%1e9) * time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	switch {
	case wrong != "":
		return fail(badRequest, "arguments."+wrong+" is missing or not as the card's input_schema says")
	case number < numbers[id]:
		return fail("409 ABORTED STALE_ATTEMPT", "a later attempt of this call was seen")
	case time.Now().After(deadline):
		return fail("504 DEADLINE_EXCEEDED TIMEOUT", "the ledger was busy until the deadline")
	case len(numbers) > 100_000:
		numbers, effects = map[string]int64{}, map[string]string{}
	}
	done := map[bool][2]string{false: {"NONE", "NONE"}, true: {"PERFORMED", "UNKNOWN"}}[action == "ledger.transfer"]
	reply := ask(line, time.Until(deadline))
	if numbers[id], effects[id] = number, done[1]; reply == "" {
		return nil, &failure{"503 UNAVAILABLE UNAVAILABLE", "the ledger failed or was too slow", done[1]}
	}
	class := refusals[reply[8:10]]
	if reply[8:10] == "10" && reply[158:190] != line[84:116] {
		class = refusals["11"] // the same transfer, but its text is another body_digest
	}
	effects[id] = map[bool]string{true: "NONE", false: done[0]}[reply[8:10] >= "20"]
	if class != "" {
		return fail(class, "ledger: "+strings.TrimSpace(reply[10:40]))
	}
	return map[string]any{"output": output(action, reply), "side_effect": done[0]}, nil
}

func route(w http.ResponseWriter, r *http.Request) (any, *failure) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/acp/v1/"), "/")
	id := strings.TrimSuffix(rest, "/cancel")
	method := map[string]string{"component": "GET", "health": "GET", "execute": "POST", "calls": "POST"}[kind]
	switch {
	case method == "" || (kind == "calls") == (id == rest) || (kind != "calls" && rest != ""):
		return fail("404 NOT_FOUND NOT_FOUND", "there is no path "+r.URL.Path)
	case method != r.Method:
		w.Header().Set("allow", method)
		return fail("405 UNIMPLEMENTED METHOD_NOT_ALLOWED", "use "+method)
	case r.Header.Get("acp-version") != "" && !strings.HasPrefix(r.Header.Get("acp-version")+".", "1."):
		return fail("400 FAILED_PRECONDITION VERSION_UNSUPPORTED", "supported acp-version: 1.0")
	case kind == "component":
		return card, nil
	case kind == "health":
		return map[string]string{"status": "SERVING"}, nil
	case kind == "calls": // Cancel waits its turn: a transfer takes microseconds, and is never stopped
		mu.Lock()
		defer mu.Unlock()
		return map[bool]any{true: map[string]string{"state": "FINISHED", "side_effect": effects[id]},
			false: map[string]string{"state": "UNKNOWN_CALL"}}[effects[id] != ""], nil
	}
	var m fields
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if len(body) == 64<<10 && err != nil {
		return fail("413 RESOURCE_EXHAUSTED PAYLOAD_TOO_LARGE", "the body exceeds 65536 bytes")
	} else if err != nil || !utf8.Valid(body) || json.Unmarshal(body, &m) != nil || m == nil {
		return fail(badRequest, "the body is not a JSON object in UTF-8")
	}
	return execute(r, m)
}

func serve(w http.ResponseWriter, r *http.Request) {
	value, f := route(w, r)
	status, code, reason, boundary := 200, "", "", map[bool]string{true: "COMPONENT", false: "CLIENT"}
	if f != nil {
		_, _ = fmt.Sscan(f.class, &status, &code, &reason)
		value = map[string]any{"error": map[string]any{"code": code, "reason": reason, "message": f.message,
			"retryable": status >= 503, "side_effect": f.effect, "boundary": boundary[status >= 429]}}
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func main() {
	for begun := time.Now(); ask(fmt.Sprintf("%-120s\n", "PROBE"), time.Minute) == ""; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 5*time.Second { // a predecessor that was killed may still hold the journal for a moment
			log.Fatal("the ledger does not start: check LEDGER_PROGRAM, LEDGERMST and LEDGERJNL")
		}
	}
	server := http.Server{Addr: "127.0.0.1:" + os.Getenv("ACP_PORT"), Handler: http.HandlerFunc(serve),
		ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	log.Fatal(server.ListenAndServe())
}
