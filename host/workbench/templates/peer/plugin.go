// Package plugin submits messages to an HTTP API; policy.txt is an example of its policy document.
package plugin

import (
	"fmt"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	details "wit_component/switchyard_hooks_details"
	http "wit_component/switchyard_hooks_http"
	peering "wit_component/switchyard_hooks_peering"
	secrets "wit_component/switchyard_hooks_secrets"
	hooks "wit_component/switchyard_hooks_types"
)

// The address of the API.
var url string

const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	address := ""
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 2 && words[0] == "url":
			address = words[1]
		default:
			// The admin sees this error as the reason of the refusal.
			return types.Err[types.Unit](fmt.Sprintf("line %d: expected 'url ADDRESS'", index+1))
		}
	}
	if address == "" {
		return types.Err[types.Unit]("there is no line 'url ADDRESS'")
	}
	url = address
	return types.Ok[types.Unit, string](types.Unit{})
}

// Submit submits a message to the peer.
func Submit(message hooks.Message, _ peering.Attempt) peering.Submitted {
	text := details.Text()
	if text.IsNone() {
		return refused(peering.RefusalClassPermanent, 0, "8-bit data has no text")
	}
	body := "from=" + escape(message.Source.Value) + "&to=" + escape(message.Destination.Value) +
		"&text=" + escape(text.Some())
	header := types.Tuple2[string, string]{F0: "content-type", F1: "application/x-www-form-urlencoded"}
	answer := http.Fetch(http.Request{
		Method: "POST", Url: url, Headers: []types.Tuple2[string, string]{header}, Body: []uint8(body),
	})
	if answer.IsErr() {
		// The host makes the outcome uncertain if the peer may have the message.
		return refused(peering.RefusalClassTemporary, 0, "no answer")
	}
	status := answer.Ok().Status
	switch {
	case status >= 200 && status < 300:
		id := strings.TrimSpace(string(answer.Ok().Body))
		return peering.Submitted{Outcome: peering.MakeOutcomeAccepted(types.Some(id))}
	case status == 429:
		refusal := peering.Refusal{
			Class: peering.RefusalClassThrottled, Code: uint32(status), RetryAfter: types.Some[uint64](1000),
		}
		return peering.Submitted{Outcome: peering.MakeOutcomeRefused(refusal)}
	case status >= 400 && status < 500:
		return refused(peering.RefusalClassPermanent, uint32(status), "refused by the API")
	}
	return refused(peering.RefusalClassTemporary, uint32(status), "the API fails")
}

// Callback reads a request of the peer.
func Callback(_ string, request hooks.HttpRequest) peering.Called {
	key := secrets.Get("callback")
	given, found := field(request.Query, "key")
	if key.IsNone() || !found || given != key.Some() {
		return called(403)
	}
	id, hasId := field(request.Query, "id")
	status, hasStatus := field(request.Query, "status")
	if !hasId || !hasStatus {
		return called(400)
	}
	state := peering.ReceiptStateEnroute
	switch status {
	case "delivered":
		state = peering.ReceiptStateDelivered
	case "failed":
		state = peering.ReceiptStateUndeliverable
	}
	answer := called(204)
	answer.Receipts = []peering.Receipt{{Id: id, State: state}}
	return answer
}

func refused(class peering.RefusalClass, code uint32, note string) peering.Submitted {
	refusal := peering.Refusal{Class: class, Code: code}
	return peering.Submitted{Outcome: peering.MakeOutcomeRefused(refusal), Note: types.Some(note)}
}

func called(status uint16) peering.Called {
	return peering.Called{Response: hooks.HttpResponse{Status: status}}
}

// A text in a form: all but unreserved characters as percent signs and hexadecimal digits.
func escape(text string) string {
	var escaped strings.Builder
	for _, octet := range []byte(text) {
		if strings.IndexByte(unreserved, octet) >= 0 {
			escaped.WriteByte(octet)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", octet)
		}
	}
	return escaped.String()
}

// The value of a field in a query. Escapes are not decoded: this API needs none.
func field(query, name string) (string, bool) {
	for _, pair := range strings.Split(query, "&") {
		if key, value, found := strings.Cut(pair, "="); found && key == name {
			return value, true
		}
	}
	return "", false
}
