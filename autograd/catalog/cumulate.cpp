#include "autograd/cumulate.h"

#include "autograd/catalog/catalog.h"
#include "core/segments.h"

namespace longhand::catalog {
namespace {

Segments segments_in(const Call& c, const char* name) {
  return Segments(c.backend(), c.in(name).value().to_ints());
}

std::vector<Case> cumulate_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const std::int64_t columns : {1, 3, 17}) {
    for (const char* const reverse : {"0", "1"}) {
      cases.push_back({{{"x", normals(rng, {10, columns})}, {"lengths", {{4}, {5, 0, 1, 4}}}},
                       {{"reverse", reverse}}});
      // In this case there are unused rows between the segments, as in a key/value cache.
      cases.push_back({{{"x", normals(rng, {12, columns})},
                        {"begins", {{3}, {1, 5, 6}}},
                        {"lengths", {{3}, {3, 0, 5}}}},
                       {{"reverse", reverse}}});
    }
  }
  return cases;
}

std::vector<Operation> cumulate_operations() {
  return {
      {.name = "cumulate",
       .page = "cumulate",
       .formula = "y_i = sum of x_k over the rows k <= i of i's segment; reverse: k >= i",
       .inputs = {{"x", "[rows, columns]", Role::master},
                  {"begins", "[segments]: first row of each; default: consecutive segments",
                   Role::index, false, true},
                  {"lengths", "[segments]: number of rows of each", Role::index, false}},
       .attributes = {{"reverse", "0", "1: sum from the last row to the first"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         const Var begins = c.maybe("begins");
         const Segments rows = begins ? Segments(c.backend(), begins.value().to_ints(),
                                                 c.in("lengths").value().to_ints())
                                      : segments_in(c, "lengths");
         return {{"y", cumulate(c.in("x"), rows, c.flag("reverse"))}};
       },
       .cases = cumulate_cases,
       .large =
           [](Rng& rng) {
             std::vector<Case> cases = cumulate_cases(rng);
             for (const char* const reverse : {"0", "1"}) {
               cases.push_back({{{"x", normals(rng, {700, 5})}, {"lengths", {{2}, {600, 100}}}},
                                {{"reverse", reverse}}});
             }
             return cases;
           }},
      {.name = "log_counts",
       .page = "cumulate",
       .formula =
           "y_i = ln max(2, n_i), n_i the number of keys up to query i, or of its whole segment",
       .inputs = {{"lengths", "[segments]: number of queries of each", Role::index, false},
                  {"key_lengths", "[segments]: number of keys of each; default: lengths",
                   Role::index, false, true}},
       .attributes = {{"columns", "1", "number of equal columns of y"},
                      {"whole", "0", "1: n_i counts all keys of the segment"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         const Segments queries = segments_in(c, "lengths");
         const Segments keys = c.maybe("key_lengths") ? segments_in(c, "key_lengths") : queries;
         return {{"y", log_counts(c.backend(), master_type(c.activations()), queries, keys,
                                  c.integer("columns"), c.flag("whole"))}};
       },
       .cases =
           [](Rng&) {
             std::vector<Case> cases;
             for (const char* const whole : {"0", "1"}) {
               cases.push_back(
                   {{{"lengths", {{4}, {3, 0, 1, 300}}}}, {{"columns", "2"}, {"whole", whole}}});
               cases.push_back({{{"lengths", {{2}, {1, 2}}}, {"key_lengths", {{2}, {9, 2}}}},
                                {{"columns", "3"}, {"whole", whole}}});
             }
             return cases;
           }}};
}

}  // namespace

extern const Family cumulate_family;
constinit const Family cumulate_family{cumulate_operations};

}  // namespace longhand::catalog
