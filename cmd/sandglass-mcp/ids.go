package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// errID is about a call whose answer would have another id: the SDK takes a number for
// a float64 and cuts it to a whole one, and puts U+FFFD for what is no text. The
// answer would be nobody's, or another call's.
var errID = errors.New("the id is neither a string nor a whole number that can be sent back as it is")

// decode reads a message, or a batch of them.
func decode(text []byte) (list []jsonrpc.Message, batch bool, err error) {
	if text[0] != '[' {
		m, err := decodeOne(text)
		return []jsonrpc.Message{m}, false, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.Token() // the bracket
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, true, err
		}
		m, err := decodeOne(raw)
		if err != nil {
			return nil, true, err
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		return nil, true, errors.New("the batch is empty")
	}
	return list, true, nil
}

func decodeOne(text []byte) (jsonrpc.Message, error) {
	m, err := jsonrpc.DecodeMessage(text)
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && !sameID(text, r.ID) {
		return nil, errID
	}
	return m, err
}

// sameID says whether the id of a call is the very one that its text has. A
// notification has none, and null is none that a call may have.
func sameID(text []byte, id jsonrpc.ID) bool {
	var sent map[string]json.RawMessage
	if json.Unmarshal(text, &sent) != nil {
		return false
	}
	raw, there := sent["id"]
	switch v := id.Raw().(type) {
	case int64:
		return string(raw) == strconv.FormatInt(v, 10)
	case string:
		return there && !strings.ContainsRune(v, '\ufffd')
	}
	return !there
}

// problem is the answer to what is no message, or to a call that cannot be taken.
func problem(id any, code int64, what string) []byte {
	b, err := json.Marshal(struct {
		Version string        `json:"jsonrpc"`
		ID      any           `json:"id"`
		Error   jsonrpc.Error `json:"error"`
	}{"2.0", id, jsonrpc.Error{Code: code, Message: what}})
	if err != nil {
		return problem(nil, code, what)
	}
	return b
}
