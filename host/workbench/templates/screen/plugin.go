// Package plugin rejects and tags texts by their words, and keeps messages of some senders in quarantine; policy.txt is an
// example of its policy document.
package plugin

import (
	"fmt"
	"slices"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	details "wit_component/switchyard_hooks_details"
	screening "wit_component/switchyard_hooks_screening"
	hooks "wit_component/switchyard_hooks_types"
)

var (
	// Words in lower case.
	rejected, tagged []string
	senders          []string
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var readRejected, readTagged, readSenders []string
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case len(words) == 2 && words[0] == "reject":
			readRejected = append(readRejected, strings.ToLower(words[1]))
		case len(words) == 2 && words[0] == "quarantine":
			readSenders = append(readSenders, words[1])
		case len(words) == 2 && words[0] == "tag":
			readTagged = append(readTagged, strings.ToLower(words[1]))
		default:
			// The admin sees this error as the reason of the refusal.
			return types.Err[types.Unit](fmt.Sprintf(
				"line %d: expected 'reject WORD', 'quarantine SENDER' or 'tag WORD'", index+1))
		}
	}
	rejected, tagged, senders = readRejected, readTagged, readSenders
	return types.Ok[types.Unit, string](types.Unit{})
}

// Screen decides about one message.
func Screen(message hooks.Message) screening.Decision {
	text := strings.ToLower(details.Text().SomeOr(""))
	contained := func(word string) bool { return strings.Contains(text, word) }
	if index := slices.IndexFunc(rejected, contained); index >= 0 {
		verdict := screening.MakeVerdictReject(hooks.RejectReasonProhibited)
		return screening.Decision{Verdict: verdict, Note: types.Some("the word " + rejected[index])}
	}
	if slices.Contains(senders, message.Source.Value) {
		note := types.Some("sender " + message.Source.Value)
		return screening.Decision{Verdict: screening.MakeVerdictQuarantine(), Note: note}
	}
	decision := screening.Decision{Verdict: screening.MakeVerdictPass()}
	if index := slices.IndexFunc(tagged, contained); index >= 0 {
		tag := hooks.Attribute{Name: "word", Value: tagged[index]}
		decision.Changes = []hooks.Change{hooks.MakeChangeSetAttribute(tag)}
	}
	return decision
}
