// Package plugin retries after increasing waits, then tries the next leg; policy.txt is an example of its policy document.
package plugin

import (
	"fmt"
	"strconv"
	"strings"

	"go.bytecodealliance.org/pkg/wit/types"
	delivery "wit_component/switchyard_hooks_delivery"
	hooks "wit_component/switchyard_hooks_types"
)

var (
	// Milliseconds before each further attempt.
	waits []uint64
	// Pause of a peer that throttles, in milliseconds.
	pause types.Option[uint64]
)

// Configure reads a policy document.
func Configure(document string) types.Result[types.Unit, string] {
	var readWaits []uint64
	var readPause types.Option[uint64]
	for index, line := range strings.Split(document, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		times, err := milliseconds(words[1:])
		switch {
		case err == nil && len(times) > 0 && words[0] == "wait":
			readWaits = times
		case err == nil && len(times) == 1 && words[0] == "pause":
			readPause = types.Some(times[0])
		default:
			// The admin sees this error as the reason of the refusal.
			return types.Err[types.Unit](fmt.Sprintf(
				"line %d: expected 'wait SECONDS ...' or 'pause SECONDS'", index+1))
		}
	}
	waits, pause = readWaits, readPause
	return types.Ok[types.Unit, string](types.Unit{})
}

// Next decides about a message after a failed attempt.
func Next(_ hooks.Message, attempt delivery.Attempt) delivery.NextStep {
	step := delivery.NextStep{
		Step: delivery.MakeStepNextLeg(),
		Note: types.Some(fmt.Sprintf("attempt %d", attempt.Number)),
	}
	switch {
	case attempt.Class == delivery.ErrorClassThrottled:
		// The peer waits, not the message.
		step.Step = delivery.MakeStepRetryAfter(0)
		if pause.IsSome() {
			step.Advice = types.Some(delivery.Advice{Pause: pause})
		}
	case attempt.Class != delivery.ErrorClassPermanent && int(attempt.Number) <= len(waits):
		step.Step = delivery.MakeStepRetryAfter(waits[attempt.Number-1])
	}
	return step
}

func milliseconds(words []string) ([]uint64, error) {
	times := make([]uint64, len(words))
	for index, word := range words {
		seconds, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, err
		}
		times[index] = seconds * 1000
	}
	return times, nil
}
