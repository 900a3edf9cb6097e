// Retries after increasing waits, then tries the next leg; policy.txt is an example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "delivery_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WAITS 32

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_delivery_attempt_t attempt_t;
typedef exports_switchyard_hooks_delivery_message_t message_t;
typedef exports_switchyard_hooks_delivery_next_step_t next_step_t;

typedef struct {
  uint64_t waits[MOST_WAITS];  // milliseconds before each further attempt
  size_t count;
  delivery_policy_option_u64_t pause;  // pause of a peer that throttles, in milliseconds
} policy_t;

static policy_t policy;

// Parses the rest of a line as seconds, into milliseconds. Returns false if there is none, or one is not a number.
static bool read_seconds(char **rest, uint64_t *milliseconds, size_t most, size_t *count) {
  *count = 0;
  for (char *word = strtok_r(NULL, " \t\r", rest); word; word = strtok_r(NULL, " \t\r", rest)) {
    char *end;
    if (*count == most || word[0] < '0' || word[0] > '9') return false;
    milliseconds[(*count)++] = strtoul(word, &end, 10) * 1000ull;
    if (*end != 0) return false;
  }
  return *count > 0;
}

// Parses one line. Returns false if the line is malformed.
static bool read_line(policy_t *read, char *line) {
  char *rest;
  size_t count;
  const char *verb = strtok_r(line, " \t\r", &rest);
  if (!verb || verb[0] == '#') return true;
  if (strcmp(verb, "wait") == 0) return read_seconds(&rest, read->waits, MOST_WAITS, &read->count);
  read->pause.is_some = true;
  return strcmp(verb, "pause") == 0 && read_seconds(&rest, &read->pause.val, 1, &count);
}

bool exports_switchyard_hooks_delivery_configure(delivery_policy_string_t *document, delivery_policy_string_t *err) {
  policy_t read = {0};
  char *text = strndup((char *)document->ptr, document->len), *rest = text;
  delivery_policy_string_free(document);
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char words[96];
      snprintf(words, sizeof words, "line %zu: expected 'wait SECONDS ...' or 'pause SECONDS'", number);
      delivery_policy_string_dup(err, words);
      free(text);
      return false;
    }
  }
  free(text);
  policy = read;
  return true;
}

void exports_switchyard_hooks_delivery_next(message_t *message, attempt_t *attempt, next_step_t *ret) {
  memset(ret, 0, sizeof *ret);
  ret->step.tag = EXPORTS_SWITCHYARD_HOOKS_DELIVERY_STEP_NEXT_LEG;
  if (attempt->class_ == EXPORTS_SWITCHYARD_HOOKS_DELIVERY_ERROR_CLASS_THROTTLED) {
    // The peer waits, not the message.
    ret->step.tag = EXPORTS_SWITCHYARD_HOOKS_DELIVERY_STEP_RETRY_AFTER;
    ret->advice.is_some = policy.pause.is_some;
    ret->advice.val.pause = policy.pause;
  } else if (attempt->class_ != EXPORTS_SWITCHYARD_HOOKS_DELIVERY_ERROR_CLASS_PERMANENT && attempt->number >= 1 &&
             attempt->number <= policy.count) {
    ret->step.tag = EXPORTS_SWITCHYARD_HOOKS_DELIVERY_STEP_RETRY_AFTER;
    ret->step.val.retry_after = policy.waits[attempt->number - 1];
  }
  char text[32];
  snprintf(text, sizeof text, "attempt %u", (unsigned)attempt->number);
  ret->note.is_some = true;
  delivery_policy_string_dup(&ret->note.val, text);
  exports_switchyard_hooks_delivery_message_free(message);
  exports_switchyard_hooks_delivery_attempt_free(attempt);
}
