// Package plugin routes by the longest prefix of the destination; policy.txt is an example of its policy document.
package plugin

import (
	"fmt"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	routing "wit_component/switchyard_hooks_routing"
	tables "wit_component/switchyard_hooks_tables"
	hooks "wit_component/switchyard_hooks_types"
)

type rule struct {
	prefix string
	// Empty: messages are refused.
	peer string
}

var (
	rules []rule
	// A sender, and the peer for its messages.
	sender, senderPeer string
	// The host's table of prefixes; a value is an index into rules.
	table uint32
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var readRules []rule
	var readSender, readPeer string
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 3 && words[0] == "route":
			readRules = append(readRules, rule{words[1], words[2]})
		case len(words) == 2 && words[0] == "reject":
			readRules = append(readRules, rule{words[1], ""})
		case len(words) == 3 && words[0] == "sender" && readSender == "":
			readSender, readPeer = words[1], words[2]
		default:
			// The admin sees this error as the reason of the refusal.
			return types.Err[types.Unit](fmt.Sprintf(
				"line %d: expected 'route PREFIX PEER', 'reject PREFIX' or, once, 'sender NAME PEER'", index+1))
		}
	}
	rows := make([]tables.Row, len(readRules))
	for index, rule := range readRules {
		rows[index] = tables.Row{Key: rule.prefix, Value: uint32(index)}
	}
	defined := tables.DefinePrefixes("prefixes", rows)
	if defined.IsErr() {
		return types.Err[types.Unit](defined.Err())
	}
	table, rules, sender, senderPeer = defined.Ok(), readRules, readSender, readPeer
	return types.Ok[types.Unit, string](types.Unit{})
}

// Route decides about one message.
func Route(message hooks.Message) routing.Decision {
	found := tables.MatchDestination(table, 0xFFFFFFFF)
	var matched rule
	if found.IsSome() {
		matched = rules[found.Some().Value]
		if matched.peer == "" {
			return decision(routing.MakeVerdictReject(hooks.RejectReasonProhibited),
				fmt.Sprintf("prefix %s is refused", matched.prefix))
		}
	}
	switch {
	case sender != "" && sender == message.Source.Value:
		return forward(senderPeer, "sender "+sender)
	case found.IsSome():
		return forward(matched.peer, "prefix "+matched.prefix)
	default:
		return routing.Decision{Verdict: routing.MakeVerdictPass()}
	}
}

func forward(peer, note string) routing.Decision {
	return decision(routing.MakeVerdictForward([]routing.Leg{{Peer: peer, Weight: 1}}), note)
}

func decision(verdict routing.Verdict, note string) routing.Decision {
	return routing.Decision{Verdict: verdict, Note: types.Some(note)}
}
