// Routes by the longest prefix of the destination; policy.txt is an example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "expected 'route PREFIX PEER', 'reject PREFIX' or, once, 'sender NAME PEER'"
#define MOST_WORDS 4

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_routing_decision_t decision_t;
typedef exports_switchyard_hooks_routing_leg_t leg_t;
typedef exports_switchyard_hooks_routing_message_t message_t;
typedef switchyard_hooks_tables_list_row_t rows_t;
typedef switchyard_hooks_tables_row_t row_t;

// A rule for the messages of one prefix; without a peer they are refused.
typedef struct {
  char *prefix;
  char *peer;
} rule_t;

typedef struct {
  char *text;  // the document, cut into words to which the rest points
  rule_t *rules;
  size_t count;
  char *sender;  // one sender, and the peer that its messages go to
  char *sender_peer;
  uint32_t table;  // the host's table of prefixes; a value is an index into rules
} policy_t;

static policy_t policy;

static void forget(policy_t *old) {
  free(old->text);
  free(old->rules);
}

// Parses one line and adds its contents. Returns false if the line is malformed.
static bool read_line(policy_t *read, char *line) {
  char *words[MOST_WORDS], *rest;
  size_t count = 0;
  for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
    if (count == 0 && word[0] == '#') return true;
    if (count == MOST_WORDS) return false;
    words[count++] = word;
  }
  if (count == 0) return true;
  if (count == 3 && strcmp(words[0], "route") == 0) {
    read->rules[read->count++] = (rule_t){words[1], words[2]};
  } else if (count == 2 && strcmp(words[0], "reject") == 0) {
    read->rules[read->count++] = (rule_t){words[1], NULL};
  } else if (count == 3 && strcmp(words[0], "sender") == 0 && !read->sender) {
    read->sender = words[1];
    read->sender_peer = words[2];
  } else {
    return false;
  }
  return true;
}

// Fills the host's table. Returns false if the host refuses it.
static bool define_table(policy_t *read, router_string_t *err) {
  router_string_t name;
  router_string_set(&name, "prefixes");
  rows_t rows = {calloc(read->count ? read->count : 1, sizeof(row_t)), read->count};
  for (size_t i = 0; i < read->count; i++) {
    router_string_set(&rows.ptr[i].key, read->rules[i].prefix);
    rows.ptr[i].value = i;
  }
  bool taken = switchyard_hooks_tables_define_prefixes(&name, &rows, &read->table, err);
  free(rows.ptr);
  return taken;
}

bool exports_switchyard_hooks_routing_configure(router_string_t *document, router_string_t *err) {
  policy_t read = {0};
  size_t lines = 1;
  for (size_t i = 0; i < document->len; i++) lines += document->ptr[i] == '\n';
  read.text = strndup((char *)document->ptr, document->len);
  read.rules = calloc(lines, sizeof(rule_t));
  router_string_free(document);

  char *rest = read.text;
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char text[128];
      snprintf(text, sizeof text, "line %zu: " EXPECTED, number);
      router_string_dup(err, text);
      forget(&read);
      return false;
    }
  }
  if (!define_table(&read, err)) {
    forget(&read);
    return false;
  }
  forget(&policy);
  policy = read;
  return true;
}

static void note(decision_t *ret, const char *format, const char *word) {
  char text[256];
  snprintf(text, sizeof text, format, word);
  ret->note.is_some = true;
  router_string_dup(&ret->note.val, text);
}

static void forward(decision_t *ret, const char *peer) {
  leg_t *leg = calloc(1, sizeof *leg);
  router_string_dup(&leg->peer, peer);
  leg->weight = 1;
  ret->verdict.tag = EXPORTS_SWITCHYARD_HOOKS_ROUTING_VERDICT_FORWARD;
  ret->verdict.val.forward.ptr = leg;
  ret->verdict.val.forward.len = 1;
}

static bool is(const router_string_t *text, const char *word) {
  return text->len == strlen(word) && memcmp(text->ptr, word, text->len) == 0;
}

void exports_switchyard_hooks_routing_route(message_t *message, decision_t *ret) {
  memset(ret, 0, sizeof *ret);
  switchyard_hooks_tables_found_t found;
  const rule_t *rule = NULL;
  if (switchyard_hooks_tables_match_destination(policy.table, UINT32_MAX, &found) && found.value < policy.count) {
    rule = &policy.rules[found.value];
  }
  if (rule && !rule->peer) {
    ret->verdict.tag = EXPORTS_SWITCHYARD_HOOKS_ROUTING_VERDICT_REJECT;
    ret->verdict.val.reject = SWITCHYARD_HOOKS_TYPES_REJECT_REASON_PROHIBITED;
    note(ret, "prefix %s is refused", rule->prefix);
  } else if (policy.sender && is(&message->source.value, policy.sender)) {
    forward(ret, policy.sender_peer);
    note(ret, "sender %s", policy.sender);
  } else if (rule) {
    forward(ret, rule->peer);
    note(ret, "prefix %s", rule->prefix);
  } else {
    ret->verdict.tag = EXPORTS_SWITCHYARD_HOOKS_ROUTING_VERDICT_PASS;
  }
  exports_switchyard_hooks_routing_message_free(message);
}
