// Tries the next leg when no DLR comes in time, or a DLR has one of some states; policy.txt is an example of its policy
// document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_receipts_decision_t decision_t;
typedef exports_switchyard_hooks_receipts_event_t event_t;
typedef exports_switchyard_hooks_receipts_message_t message_t;
typedef exports_switchyard_hooks_receipts_submission_t submission_t;

// The names of the states, in the order of the contract.
static const char *const STATES[] = {"scheduled", "enroute",  "delivered", "expired",  "deleted", "undeliverable",
                                     "accepted",  "unknown",  "rejected",  "skipped"};
#define STATE_COUNT (sizeof STATES / sizeof *STATES)

typedef struct {
  receipt_option_u64_t wait;  // milliseconds without a DLR
  bool next_leg[STATE_COUNT];
} policy_t;

static policy_t policy;

// Parses one line. Returns false if the line is malformed.
static bool read_line(policy_t *read, char *line) {
  char *rest;
  const char *verb = strtok_r(line, " \t\r", &rest);
  if (!verb || verb[0] == '#') return true;
  char *word = strtok_r(NULL, " \t\r", &rest);
  if (!word) return false;
  if (strcmp(verb, "wait") == 0) {
    char *end;
    if (word[0] < '0' || word[0] > '9') return false;
    read->wait.is_some = true;
    read->wait.val = strtoul(word, &end, 10) * 1000ull;
    return *end == 0 && !strtok_r(NULL, " \t\r", &rest);
  }
  if (strcmp(verb, "next-leg") != 0) return false;
  for (; word; word = strtok_r(NULL, " \t\r", &rest)) {
    size_t state = 0;
    while (state < STATE_COUNT && strcmp(word, STATES[state]) != 0) state++;
    if (state == STATE_COUNT) return false;
    read->next_leg[state] = true;
  }
  return true;
}

bool exports_switchyard_hooks_receipts_configure(receipt_string_t *document, receipt_string_t *err) {
  policy_t read = {0};
  char *text = strndup((char *)document->ptr, document->len), *rest = text;
  receipt_string_free(document);
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char words[96];
      snprintf(words, sizeof words, "line %zu: expected 'wait SECONDS' or 'next-leg STATE ...'", number);
      receipt_string_dup(err, words);
      free(text);
      return false;
    }
  }
  free(text);
  policy = read;
  return true;
}

void exports_switchyard_hooks_receipts_decide(message_t *message, submission_t *submission, event_t *event,
                                              decision_t *ret) {
  memset(ret, 0, sizeof *ret);
  ret->step.tag = EXPORTS_SWITCHYARD_HOOKS_RECEIPTS_STEP_ACCEPT;
  if (event->tag == EXPORTS_SWITCHYARD_HOOKS_RECEIPTS_EVENT_ACCEPTED) {
    if (submission->leg + 1 < submission->legs) ret->wait = policy.wait;
  } else if (event->tag == EXPORTS_SWITCHYARD_HOOKS_RECEIPTS_EVENT_TIMEOUT) {
    char text[96];
    snprintf(text, sizeof text, "no DLR from %.*s", (int)submission->peer.len, (char *)submission->peer.ptr);
    ret->step.tag = EXPORTS_SWITCHYARD_HOOKS_RECEIPTS_STEP_NEXT_LEG;
    ret->note.is_some = true;
    receipt_string_dup(&ret->note.val, text);
  } else if (event->val.dlr.state < STATE_COUNT && policy.next_leg[event->val.dlr.state]) {
    ret->step.tag = EXPORTS_SWITCHYARD_HOOKS_RECEIPTS_STEP_NEXT_LEG;
    ret->note.is_some = true;
    receipt_string_dup(&ret->note.val, STATES[event->val.dlr.state]);
  }
  exports_switchyard_hooks_receipts_message_free(message);
  exports_switchyard_hooks_receipts_submission_free(submission);
}
