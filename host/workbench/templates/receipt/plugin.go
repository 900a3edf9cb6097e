// Package plugin tries the next leg when no DLR comes in time, or a DLR has one of some states; policy.txt is an example of its
// policy document.
package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	receipts "wit_component/switchyard_hooks_receipts"
	hooks "wit_component/switchyard_hooks_types"
)

var states = map[string]receipts.DlrState{
	"delivered":     receipts.DlrStateDelivered,
	"expired":       receipts.DlrStateExpired,
	"deleted":       receipts.DlrStateDeleted,
	"undeliverable": receipts.DlrStateUndeliverable,
	"unknown":       receipts.DlrStateUnknown,
	"rejected":      receipts.DlrStateRejected,
}

var (
	// Milliseconds without a DLR.
	wait types.Option[uint64]
	// The names of states, by state.
	nextLeg map[receipts.DlrState]string
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var readWait types.Option[uint64]
	readNextLeg := map[receipts.DlrState]string{}
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		understood := len(words) > 1
		switch {
		case words[0] == "wait" && len(words) == 2:
			seconds, err := strconv.ParseUint(words[1], 10, 32)
			readWait, understood = types.Some(seconds*1000), err == nil
		case words[0] == "next-leg":
			for _, name := range words[1:] {
				state, known := states[name]
				readNextLeg[state], understood = name, understood && known
			}
		default:
			understood = false
		}
		if !understood {
			// The admin sees this error as the reason of the refusal.
			return types.Err[types.Unit](fmt.Sprintf(
				"line %d: expected 'wait SECONDS' or 'next-leg STATE ...'", index+1))
		}
	}
	wait, nextLeg = readWait, readNextLeg
	return types.Ok[types.Unit, string](types.Unit{})
}

// Decide decides the next step after a DLR, or after its absence.
func Decide(_ hooks.Message, submission receipts.Submission, event receipts.Event) receipts.Decision {
	decision := receipts.Decision{Step: receipts.MakeStepAccept()}
	switch event.Tag() {
	case receipts.EventAccepted:
		if int(submission.Leg)+1 < int(submission.Legs) {
			decision.Wait = wait
		}
	case receipts.EventTimeout:
		decision.Step = receipts.MakeStepNextLeg()
		decision.Note = types.Some(fmt.Sprintf("no DLR from %s", submission.Peer))
	default:
		if name, found := nextLeg[event.Dlr().State]; found {
			decision.Step = receipts.MakeStepNextLeg()
			decision.Note = types.Some(name)
		}
	}
	return decision
}
