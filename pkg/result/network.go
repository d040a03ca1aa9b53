package result

// Network is what a run with a list of hosts (--allow-host) did over the
// network. It is written by the supervisor's relay; names and addresses come
// from inside and are bounded and printable.
type Network struct {
	Connections []Connection `json:"connections"`
	// MoreConnections counts those that there was no room for.
	MoreConnections int64         `json:"more_connections,omitempty"`
	Refused         []RefusedHost `json:"refused"`
	// MoreRefused counts the refusals of hosts that there was no room for.
	MoreRefused int64 `json:"more_refused,omitempty"`
	BytesUp     int64 `json:"bytes_up"`   // from the program, in all
	BytesDown   int64 `json:"bytes_down"` // to the program, in all
}

// Connection is one that was let through, or of an allowed host and cut.
type Connection struct {
	Host       string  `json:"host"` // the name, or the address where that was listed
	Port       uint16  `json:"port"`
	Address    string  `json:"address,omitempty"` // that was dialled, without the port; none when none was
	BytesUp    int64   `json:"bytes_up"`
	BytesDown  int64   `json:"bytes_down"`
	DurationMS int64   `json:"duration_ms"`
	Verdict    Verdict `json:"verdict"`
	Error      string  `json:"error,omitempty"` // of the host's kernel or resolver
}

// Verdict is how a connection ended.
type Verdict string

// Verdicts.
const (
	Closed      Verdict = "closed"      // by its two ends
	Reset       Verdict = "reset"       // by one of them
	Unreachable Verdict = "unreachable" // nobody could be connected to, or the name has no address
	Private     Verdict = "private"     // the name has only addresses that are not public
	ServerName  Verdict = "server_name" // the TLS hello names another host, or none
	Idle        Verdict = "idle"        // nothing passed for too long
	ByteLimit   Verdict = "bytes"       // the run's bytes are used up
	RunEnded    Verdict = "run_ended"   // it was open when the run ended
)

// RefusedHost is a host that is not in the list, or was not looked up, by name
// or address, with the port where one was tried.
type RefusedHost struct {
	Host   string `json:"host"`
	Port   uint16 `json:"port,omitempty"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}
