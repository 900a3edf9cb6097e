// Serves an HTTP API with the parameters `login`, `password`, `to` and `text`, which answers with a line of text; policy.txt is an
// example of its policy document.
//
// A function owns its arguments and frees them; the generated code frees the results.

#include "front_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORDS 3
#define WORD_LENGTH 64

// Short names for declarations of the generated header.
typedef exports_switchyard_hooks_translation_request_t request_t;
typedef exports_switchyard_hooks_translation_response_t response_t;
typedef exports_switchyard_hooks_translation_reading_t reading_t;
typedef exports_switchyard_hooks_translation_outcome_t outcome_t;
typedef exports_switchyard_hooks_translation_submission_t submission_t;
typedef exports_switchyard_hooks_translation_submission_result_t result_t;
typedef exports_switchyard_hooks_translation_refusal_t refusal_t;

static char accepted[WORD_LENGTH] = "OK";
static char refused[WORD_LENGTH] = "ERROR";

// Parses one line. Returns false if it is malformed.
static bool read_line(char *line) {
  char *words[MOST_WORDS], *rest;
  size_t count = 0;
  for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
    if (count == 0 && word[0] == '#') return true;
    if (count == MOST_WORDS) return false;
    words[count++] = word;
  }
  if (count == 0) return true;
  if (count != 2 || strlen(words[1]) >= WORD_LENGTH) return false;
  if (strcmp(words[0], "accepted") == 0) {
    strcpy(accepted, words[1]);
  } else if (strcmp(words[0], "refused") == 0) {
    strcpy(refused, words[1]);
  } else {
    return false;
  }
  return true;
}

bool exports_switchyard_hooks_translation_configure(front_end_string_t *document, front_end_string_t *err) {
  char *text = strndup((char *)document->ptr, document->len), *rest = text;
  front_end_string_free(document);
  bool good = true;
  for (size_t number = 1; rest && good; number++) {
    good = read_line(strsep(&rest, "\n"));
    if (!good) {
      char why[96];
      snprintf(why, sizeof why, "line %zu: expected 'accepted WORD' or 'refused WORD'", number);
      front_end_string_dup(err, why);
    }
  }
  free(text);
  return good;
}

static int digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The octets are UTF-8, which the host requires of a text.
static bool is_utf8(const uint8_t *octets, size_t length) {
  for (size_t i = 0; i < length;) {
    uint8_t first = octets[i++];
    if (first < 0x80) continue;
    size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4 || length - i < more) return false;
    uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (octets[i] < low || octets[i] > high) return false;
    for (i++; --more; i++) {
      if (octets[i] < 0x80 || octets[i] > 0xBF) return false;
    }
  }
  return true;
}

// Finds a parameter of application/x-www-form-urlencoded, and decodes its value.
static bool parameter(const uint8_t *form, size_t length, const char *name, front_end_string_t *value) {
  size_t wanted = strlen(name);
  for (size_t start = 0; start < length;) {
    size_t end = start;
    while (end < length && form[end] != '&') end++;
    if (end - start > wanted && memcmp(form + start, name, wanted) == 0 && form[start + wanted] == '=') {
      uint8_t *octets = malloc(end - start);
      size_t count = 0;
      for (size_t i = start + wanted + 1; i < end; i++) {
        bool escaped = form[i] == '%' && end - i > 2 && digit(form[i + 1]) >= 0 && digit(form[i + 2]) >= 0;
        octets[count++] = escaped ? digit(form[i + 1]) * 16 + digit(form[i + 2]) : form[i] == '+' ? ' ' : form[i];
        if (escaped) i += 2;
      }
      value->ptr = octets;
      value->len = count;
      if (is_utf8(octets, count)) return true;
      front_end_string_free(value);
      return false;
    }
    start = end + 1;
  }
  return false;
}

static void respond(response_t *ret, uint16_t status, const char *word, const uint8_t *detail, size_t length) {
  size_t prefix = strlen(word) + 1;
  ret->status = status;
  ret->headers.len = 1;
  ret->headers.ptr = calloc(1, sizeof *ret->headers.ptr);
  front_end_string_dup(&ret->headers.ptr->name, "content-type");
  front_end_string_dup(&ret->headers.ptr->value, "text/plain");
  ret->body.len = prefix + length;
  ret->body.ptr = malloc(prefix + length);
  memcpy(ret->body.ptr, word, prefix - 1);
  ret->body.ptr[prefix - 1] = ' ';
  if (length) memcpy(ret->body.ptr + prefix, detail, length);
}

void exports_switchyard_hooks_translation_read(request_t *request, reading_t *ret) {
  static const char *const names[] = {"login", "password", "to", "text"};
  front_end_string_t values[4];
  bool post = request->method.len == 4 && memcmp(request->method.ptr, "POST", 4) == 0;
  const uint8_t *form = post ? request->body.ptr : request->query.ptr;
  size_t length = post ? request->body.len : request->query.len, found = 0;
  memset(ret, 0, sizeof *ret);
  while (found < 4 && parameter(form, length, names[found], &values[found])) found++;
  if (found < 4) {
    char why[64];
    int count = snprintf(why, sizeof why, "%s is missing", names[found]);
    ret->tag = EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_READING_RESPOND;
    respond(&ret->val.respond, 400, refused, (uint8_t *)why, (size_t)count);
    while (found > 0) front_end_string_free(&values[--found]);
  } else {
    submission_t *submission = calloc(1, sizeof *submission);
    submission->destination = values[2];
    submission->content.tag = EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_CONTENT_TEXT;
    submission->content.val.text = values[3];
    submission->coding = EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_CODING_AUTOMATIC;
    submission->receipts = EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_WANTED_RECEIPTS_NONE;
    ret->tag = EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_READING_SUBMIT;
    ret->val.submit.credentials.account = values[0];
    ret->val.submit.credentials.password = values[1];
    ret->val.submit.submissions.ptr = submission;
    ret->val.submit.submissions.len = 1;
  }
  exports_switchyard_hooks_translation_request_free(request);
}

static uint16_t status_of(const refusal_t *refusal) {
  switch (refusal->reason) {
    case EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_REFUSAL_REASON_UNAUTHENTICATED: return 401;
    case EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_REFUSAL_REASON_THROTTLED: return 429;
    case EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_REFUSAL_REASON_UNAVAILABLE: return 503;
    case EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_REFUSAL_REASON_INTERNAL: return 500;
    default: return 422;
  }
}

void exports_switchyard_hooks_translation_reply(request_t *request, outcome_t *outcome, response_t *ret) {
  bool is_refused = outcome->tag == EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_OUTCOME_REFUSED;
  // The host gives one result per submission.
  const result_t *first = is_refused ? NULL : outcome->val.results.ptr;
  if (first && first->tag == EXPORTS_SWITCHYARD_HOOKS_TRANSLATION_SUBMISSION_RESULT_ACCEPTED) {
    respond(ret, 200, accepted, first->val.accepted.id.ptr, first->val.accepted.id.len);
  } else {
    const refusal_t *refusal = first ? &first->val.refused : &outcome->val.refused;
    respond(ret, status_of(refusal), refused, refusal->detail.ptr, refusal->detail.len);
  }
  exports_switchyard_hooks_translation_request_free(request);
  exports_switchyard_hooks_translation_outcome_free(outcome);
}
