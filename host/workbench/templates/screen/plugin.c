// Rejects and tags texts by their words, and keeps messages of some senders in quarantine; policy.txt is an example of its
// policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 3

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_screening_decision_t decision_t;
typedef exports_switchyard_hooks_screening_message_t message_t;
typedef switchyard_hooks_types_change_t change_t;

// The action of a line, and its word or sender.
typedef struct {
  enum { REJECT, QUARANTINE, TAG } action;
  char *word;
} rule_t;

typedef struct {
  char *text;  // the document, cut into words to which the rules point
  rule_t *rules;
  size_t count;
} policy_t;

static policy_t policy;

static void forget(policy_t *old) {
  free(old->text);
  free(old->rules);
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

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
  if (count != 2) return false;
  rule_t rule = {REJECT, words[1]};
  if (strcmp(words[0], "quarantine") == 0) {
    rule.action = QUARANTINE;
  } else {
    if (strcmp(words[0], "tag") == 0) {
      rule.action = TAG;
    } else if (strcmp(words[0], "reject") != 0) {
      return false;
    }
    for (char *c = rule.word; *c; c++) *c = lower(*c);
  }
  read->rules[read->count++] = rule;
  return true;
}

bool exports_switchyard_hooks_screening_configure(screen_string_t *document, screen_string_t *err) {
  policy_t read = {0};
  size_t lines = 1;
  for (size_t i = 0; i < document->len; i++) lines += document->ptr[i] == '\n';
  read.text = strndup((char *)document->ptr, document->len);
  read.rules = calloc(lines, sizeof(rule_t));
  screen_string_free(document);

  char *rest = read.text;
  for (size_t number = 1; rest; number++) {
    char *line = strsep(&rest, "\n");
    if (!read_line(&read, line)) {
      char text[96];
      snprintf(text, sizeof text, "line %zu: expected 'reject WORD', 'quarantine SENDER' or 'tag WORD'", number);
      screen_string_dup(err, text);
      forget(&read);
      return false;
    }
  }
  forget(&policy);
  policy = read;
  return true;
}

static bool contains(const screen_string_t *text, const char *word) {
  size_t length = strlen(word);
  for (size_t start = 0; start + length <= text->len; start++) {
    size_t same = 0;
    while (same < length && lower((char)text->ptr[start + same]) == word[same]) same++;
    if (same == length) return true;
  }
  return false;
}

static bool is(const screen_string_t *text, const char *word) {
  return text->len == strlen(word) && memcmp(text->ptr, word, text->len) == 0;
}

// The first rule with this action that applies to the sender or the text.
static const rule_t *find(int action, const screen_string_t *sender, const screen_string_t *text) {
  for (size_t i = 0; i < policy.count; i++) {
    const rule_t *rule = &policy.rules[i];
    if ((int)rule->action != action) continue;
    if (action == QUARANTINE ? is(sender, rule->word) : contains(text, rule->word)) return rule;
  }
  return NULL;
}

static void note(decision_t *ret, const char *format, const char *word) {
  char text[256];
  snprintf(text, sizeof text, format, word);
  ret->note.is_some = true;
  screen_string_dup(&ret->note.val, text);
}

void exports_switchyard_hooks_screening_screen(message_t *message, decision_t *ret) {
  memset(ret, 0, sizeof *ret);
  screen_string_t text = {0};
  bool has_text = switchyard_hooks_details_text(&text);
  const screen_string_t *sender = &message->source.value;
  const rule_t *rule;
  ret->verdict.tag = EXPORTS_SWITCHYARD_HOOKS_SCREENING_VERDICT_PASS;
  if ((rule = find(REJECT, sender, &text))) {
    ret->verdict.tag = EXPORTS_SWITCHYARD_HOOKS_SCREENING_VERDICT_REJECT;
    ret->verdict.val.reject = SWITCHYARD_HOOKS_TYPES_REJECT_REASON_PROHIBITED;
    note(ret, "the word %s", rule->word);
  } else if ((rule = find(QUARANTINE, sender, &text))) {
    ret->verdict.tag = EXPORTS_SWITCHYARD_HOOKS_SCREENING_VERDICT_QUARANTINE;
    note(ret, "sender %s", rule->word);
  } else if ((rule = find(TAG, sender, &text))) {
    change_t *change = calloc(1, sizeof *change);
    change->tag = SWITCHYARD_HOOKS_TYPES_CHANGE_SET_ATTRIBUTE;
    screen_string_dup(&change->val.set_attribute.name, "word");
    screen_string_dup(&change->val.set_attribute.value, rule->word);
    ret->changes.ptr = change;
    ret->changes.len = 1;
  }
  if (has_text) screen_string_free(&text);
  exports_switchyard_hooks_screening_message_free(message);
}
