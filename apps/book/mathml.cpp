#include "apps/book/mathml.h"

#include <cctype>
#include <map>
#include <vector>

#include "apps/html/page.h"
#include "core/error.h"
#include "core/quote.h"

namespace longhand::app::book {
namespace {

using Table = std::map<std::string_view, std::string_view>;

/// LaTeX commands for letters and symbols that are set like variables.
const Table letters{
    {"alpha", "α"},      {"beta", "β"},     {"gamma", "γ"},  {"delta", "δ"},  {"epsilon", "ϵ"},
    {"varepsilon", "ε"}, {"eta", "η"},      {"theta", "θ"},  {"lambda", "λ"}, {"mu", "μ"},
    {"nu", "ν"},         {"pi", "π"},       {"rho", "ρ"},    {"sigma", "σ"},  {"tau", "τ"},
    {"phi", "ϕ"},        {"varphi", "φ"},   {"psi", "ψ"},    {"omega", "ω"},  {"kappa", "κ"},
    {"ell", "ℓ"},        {"partial", "∂"},  {"infty", "∞"},  {"Phi", "Φ"},    {"Omega", "Ω"},
    {"Delta", "Δ"},      {"Gamma", "Γ"},    {"Sigma", "Σ"},  {"top", "⊤"},    {"bot", "⊥"},
    {"square", "□"},     {"emptyset", "∅"}, {"Lambda", "Λ"}, {"Pi", "Π"},     {"xi", "ξ"},
    {"zeta", "ζ"},       {"chi", "χ"},      {"dots", "…"},   {"ldots", "…"},  {"cdots", "⋯"},
    {"vdots", "⋮"},      {"ddots", "⋱"},    {"nabla", "∇"}};

/// LaTeX commands for binary operators and relations.
const Table operators{{"cdot", "⋅"},       {"times", "×"},  {"odot", "⊙"},       {"pm", "±"},
                      {"mp", "∓"},         {"le", "≤"},     {"ge", "≥"},         {"ne", "≠"},
                      {"approx", "≈"},     {"propto", "∝"}, {"in", "∈"},         {"notin", "∉"},
                      {"leftarrow", "←"},  {"to", "→"},     {"rightarrow", "→"}, {"mapsto", "↦"},
                      {"Rightarrow", "⇒"}, {"iff", "⇔"},    {"mid", "∣"},        {"circ", "∘"},
                      {"subset", "⊂"},     {"cup", "∪"},    {"cap", "∩"},        {"setminus", "∖"},
                      {"ll", "≪"},         {"gg", "≫"},     {"equiv", "≡"},      {"sim", "∼"},
                      {"otimes", "⊗"},     {"oplus", "⊕"},  {"forall", "∀"},     {"exists", "∃"},
                      {"land", "∧"},       {"lor", "∨"},    {"neg", "¬"},        {"colon", ":"}};

const Table fences{{"langle", "⟨"}, {"rangle", "⟩"}, {"lfloor", "⌊"}, {"rfloor", "⌋"},
                   {"lceil", "⌈"},  {"rceil", "⌉"},  {"lVert", "‖"},  {"rVert", "‖"},
                   {"lvert", "|"},  {"rvert", "|"},  {"{", "{"},      {"}", "}"},
                   {"|", "‖"}};

/// LaTeX commands for operators whose limits are set above and below them in a displayed formula.
const Table large{{"sum", "∑"}, {"prod", "∏"}, {"bigcup", "⋃"}, {"int", "∫"}};
const Table limits{{"max", "max"}, {"min", "min"}, {"lim", "lim"}, {"sup", "sup"}, {"inf", "inf"}};

const Table functions{{"ln", "ln"},   {"log", "log"}, {"exp", "exp"},   {"sin", "sin"},
                      {"cos", "cos"}, {"tan", "tan"}, {"tanh", "tanh"}, {"det", "det"},
                      {"arg", "arg"}, {"Pr", "Pr"},   {"bmod", "mod"}};

const Table spaces{{",", "0.17em"}, {";", "0.28em"}, {":", "0.22em"}, {"!", "-0.17em"},
                   {" ", "0.33em"}, {"quad", "1em"}, {"qquad", "2em"}};

const Table accents{{"hat", "^"}, {"tilde", "~"}, {"bar", "¯"}, {"dot", "˙"}, {"vec", "→"}};

const Table sizes{{"big", "1.2em"}, {"Big", "1.8em"}, {"bigg", "2.4em"}, {"Bigg", "3em"}};

std::string element(std::string_view name, std::string_view content,
                    std::string_view attributes = {}) {
  return text("<", name, attributes.empty() ? "" : " ", attributes, ">", content, "</", name, ">");
}

std::string row(std::string_view content) { return element("mrow", content); }

/// A symbol or group converted to MathML, with the properties that determine where its subscript
/// and superscript are placed.
struct Atom {
  std::string mathml;
  // In a displayed formula, the subscript is set below and the superscript above.
  bool limits = false;
  bool under_only = false;  // \underbrace: the subscript is always set below
};

class Parser {
 public:
  Parser(std::string_view latex, bool display) : rest_(latex), whole_(latex), display_(display) {}

  std::string formula() {
    const std::string content = list();
    if (!rest_.empty()) wrong("a closing brace, & or \\\\ has no matching beginning");
    return content;
  }

 private:
  static constexpr int deepest = 128;

  [[noreturn]] void wrong(std::string_view what) const {
    fail("formula ", quote(whole_), ": ", what);
  }

  void skip_spaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) {
      rest_.remove_prefix(1);
    }
  }

  bool take(std::string_view what) {
    if (!rest_.starts_with(what)) return false;
    rest_.remove_prefix(what.size());
    return true;
  }

  /// The name of the command after a backslash: either letters, or one other character.
  std::string_view command() {
    std::size_t length = 0;
    while (length < rest_.size() && std::isalpha(static_cast<unsigned char>(rest_[length]))) {
      ++length;
    }
    if (length == 0 && !rest_.empty()) length = 1;
    const std::string_view name = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return name;
  }

  bool at_end_of_list() const {
    return rest_.empty() || rest_.front() == '}' || rest_.front() == '&' ||
           rest_.starts_with("\\\\") || rest_.starts_with("\\end{") || ends_left();
  }

  /// True at `\right`. False at `\rightarrow`, which begins with the same letters.
  bool ends_left() const {
    constexpr std::string_view right = "\\right";
    return rest_.starts_with(right) &&
           (rest_.size() == right.size() ||
            !std::isalpha(static_cast<unsigned char>(rest_[right.size()])));
  }

  std::string list() {
    if (++depth_ > deepest) wrong("nested too deep");
    std::string content;
    for (skip_spaces(); !at_end_of_list(); skip_spaces()) content += scripted();
    --depth_;
    return content;
  }

  /// Reads a group in braces and returns the LaTeX text between the braces.
  std::string_view raw_group() {
    skip_spaces();
    if (!take("{")) wrong("a brace is missing");
    int open = 1;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      const bool escaped = i > 0 && rest_[i - 1] == '\\';
      if (rest_[i] == '{' && !escaped) ++open;
      if (rest_[i] == '}' && !escaped && --open == 0) {
        const std::string_view inside = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return inside;
      }
    }
    wrong("a brace is not closed");
  }

  std::string group() {
    skip_spaces();
    if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front()))) {
      return element("mn", take_one());  // without braces, LaTeX reads one digit: x^12 is x^{1}2
    }
    if (!take("{")) return atom().mathml;
    const std::string content = list();
    if (!take("}")) wrong("a brace is not closed");
    return row(content);
  }

  /// Converts a symbol or group together with its subscript, superscript and primes.
  std::string scripted() {
    const Atom base = rest_.front() == '^' || rest_.front() == '_' ? Atom{row("")} : atom();
    std::string below, above, primes;
    for (skip_spaces(); !rest_.empty(); skip_spaces()) {
      if (take("'")) {
        primes += "′";
      } else if (take("^")) {
        if (!above.empty()) wrong("two superscripts");
        above = group();
      } else if (take("_")) {
        if (!below.empty()) wrong("two subscripts");
        below = group();
      } else {
        break;
      }
    }
    if (!primes.empty()) {
      const std::string marks = element("mo", primes);
      above = above.empty() ? marks : row(marks + above);
    }
    if (below.empty() && above.empty()) return base.mathml;
    const bool stacked = base.under_only || (base.limits && display_);
    const std::string_view name = above.empty()   ? (stacked ? "munder" : "msub")
                                  : below.empty() ? (stacked ? "mover" : "msup")
                                                  : (stacked ? "munderover" : "msubsup");
    return element(name, base.mathml + below + above);
  }

  Atom atom() {
    if (++depth_ > deepest) wrong("nested too deep");
    Atom made = next_atom();
    --depth_;
    return made;
  }

  Atom next_atom() {
    skip_spaces();
    if (rest_.empty()) wrong("an argument is missing at the end");
    const char c = rest_.front();
    if (c == '{') return {group()};
    if (c == '\\') {
      rest_.remove_prefix(1);
      return named(command());
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return {number()};
    rest_.remove_prefix(1);
    if (std::isalpha(static_cast<unsigned char>(c))) return {element("mi", std::string(1, c))};
    switch (c) {
      case '(':
      case ')':
      case '[':
      case ']':
      case '|':
        return {element("mo", std::string(1, c), "stretchy=\"false\"")};
      case '-':
        return {element("mo", "−")};
      case '*':
        return {element("mo", "∗")};
      case '~':
        return {element("mspace", "", "width=\"0.33em\"")};
      case '=':
      case '+':
      case '<':
      case '>':
      case ',':
      case '.':
      case ';':
      case ':':
      case '/':
      case '!':
      case '?':
        return {element("mo", html::escape(std::string(1, c)))};
      default:
        wrong(text("unknown character ", quote(std::string(1, c))));
    }
  }

  std::string number() {
    std::size_t length = 0;
    const auto digit = [&](std::size_t i) {
      return i < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[i]));
    };
    while (digit(length) || (length < rest_.size() && rest_[length] == '.' && digit(length + 1))) {
      ++length;
    }
    const std::string_view digits = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return element("mn", digits);
  }

  static const std::string_view* find(const Table& table, std::string_view name) {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : &found->second;
  }

  Atom named(std::string_view name) {
    if (const auto* letter = find(letters, name)) return {element("mi", *letter)};
    if (const auto* sign = find(operators, name)) return {element("mo", *sign)};
    if (const auto* fence = find(fences, name)) {
      return {element("mo", *fence, "stretchy=\"false\"")};
    }
    if (const auto* sign = find(large, name)) return {element("mo", *sign), true};
    if (const auto* word = find(limits, name)) return {function(*word), true};
    if (const auto* word = find(functions, name)) return {function(*word)};
    if (const auto* width = find(spaces, name)) {
      return {element("mspace", "", text("width=\"", *width, "\""))};
    }
    if (const auto* mark = find(accents, name)) {
      return {element("mover", group() + element("mo", *mark), "accent=\"true\"")};
    }
    if (const auto* size = find(sizes, name)) return {sized(*size)};
    if (name == "_" || name == "%" || name == "#" || name == "&" || name == "$") {
      return {element("mi", html::escape(name))};
    }
    if (name == "frac" || name == "tfrac" || name == "dfrac" || name == "cfrac") {
      const std::string above = group();
      const std::string fraction = element("mfrac", above + group());
      if (name == "frac") return {fraction};
      return {element("mstyle", fraction,
                      name == "tfrac" ? "displaystyle=\"false\" scriptlevel=\"0\""
                                      : "displaystyle=\"true\" scriptlevel=\"0\"")};
    }
    if (name == "sqrt") return {element("msqrt", group())};
    if (name == "text" || name == "mathrm" || name == "operatorname") return {words(name)};
    if (name == "mathbb" || name == "mathcal") return {special_letter(name)};
    if (name == "mathrel" || name == "mathbin") return {group()};
    if (name == "underbrace") {
      return {element("munder", group() + element("mo", "⏟")), false, true};
    }
    if (name == "left") return {stretched()};
    if (name == "begin") return {environment()};
    wrong(text("the command ", quote(text("\\", name)), " is not known"));
  }

  /// A function's name in MathML, followed by a thin space if its argument is not in brackets.
  std::string function(std::string_view word) {
    skip_spaces();
    const bool alone = rest_.empty() || std::string_view("({[^_,.)}]&").find(rest_.front()) !=
                                            std::string_view::npos;
    return element("mi", word) + (alone ? "" : element("mspace", "", "width=\"0.17em\""));
  }

  std::string sized(std::string_view size) {
    skip_spaces();
    if (rest_.empty()) wrong("expected a bracket after \\big");
    std::string bracket(1, rest_.front());
    rest_.remove_prefix(1);
    if (bracket == "\\") {
      const std::string_view name = command();
      const auto* fence = find(fences, name);
      if (!fence) wrong("expected a bracket after \\big");
      bracket = *fence;
    }
    return element(
        "mo", html::escape(bracket),
        text("stretchy=\"true\" symmetric=\"true\" minsize=\"", size, "\" maxsize=\"", size, "\""));
  }

  /// The bracket after \left or \right. "." stands for no bracket.
  std::string stretchy_bracket() {
    skip_spaces();
    if (rest_.empty()) wrong("expected a bracket after \\left");
    if (take(".")) return "";
    return sized("1em");
  }
  std::string stretched() {
    const std::string open = stretchy_bracket(), inside = list();
    if (!take("\\right")) wrong("expected a \\right for every \\left");
    return row(open + inside + stretchy_bracket());
  }

  /// Converts the argument of \text, \mathrm or \operatorname to upright text. Within \text{...},
  /// formulas are enclosed in dollars.
  std::string words(std::string_view name) {
    const std::string_view inside = raw_group();
    if (name != "text") {
      std::string plain;
      for (const char c : inside) {
        if (c != '\\' && c != ',') plain += c;
      }
      return element("mi", html::escape(plain), "mathvariant=\"normal\"");
    }
    std::string all, plain;
    const auto flush = [&] {
      if (!plain.empty()) all += element("mtext", plain);
      plain.clear();
    };
    for (std::size_t i = 0; i < inside.size(); ++i) {
      if (inside[i] == '$') {
        const std::size_t end = inside.find('$', i + 1);
        if (end == std::string_view::npos) wrong("a dollar is not closed");
        flush();
        all += row(Parser(inside.substr(i + 1, end - i - 1), false).formula());
        i = end;
      } else if (inside[i] == ' ') {
        plain += "\u00a0";  // MathML drops spaces at the ends of a text
      } else if (inside[i] != '\\') {
        plain += html::escape(std::string(1, inside[i]));
      }
    }
    flush();
    return row(all);
  }

  std::string special_letter(std::string_view style) {
    skip_spaces();
    const std::string_view letter = rest_.starts_with('{') ? raw_group() : take_one();
    static const Table double_struck{{"E", "𝔼"}, {"R", "ℝ"}, {"N", "ℕ"}, {"Z", "ℤ"}, {"P", "ℙ"}};
    static const Table script{{"R", "ℛ"}, {"L", "ℒ"}, {"G", "𝒢"}, {"N", "𝒩"}, {"O", "𝒪"}};
    const auto* found = find(style == "mathbb" ? double_struck : script, letter);
    if (!found) wrong(text("\\", style, " of ", quote(letter), " is not known"));
    return element("mi", *found);
  }
  std::string_view take_one() {
    if (rest_.empty()) wrong("an argument is missing at the end");
    const std::string_view one = rest_.substr(0, 1);
    rest_.remove_prefix(1);
    return one;
  }

  std::string environment() {
    const std::string name(raw_group());
    const bool aligned = name == "aligned";
    if (!aligned && name != "pmatrix" && name != "cases" && name != "matrix") {
      wrong(text("the environment ", quote(name), " is not known"));
    }
    std::string rows, cells;
    std::size_t column = 0;
    for (;;) {
      const std::string_view side = aligned           ? (column % 2 == 0 ? "right" : "left")
                                    : name == "cases" ? "left"
                                                      : "center";
      cells += element("mtd", row(list()),
                       text("style=\"text-align:", side, aligned ? ";padding-left:0" : "", "\""));
      ++column;
      if (take("&")) continue;
      rows += element("mtr", cells);
      cells.clear();
      column = 0;
      if (take("\\\\")) continue;
      if (take("\\end{" + name + "}")) break;
      wrong(text("the environment ", name, " is not closed"));
    }
    const std::string table = element("mtable", rows, aligned ? "displaystyle=\"true\"" : "");
    if (name == "pmatrix") return row(element("mo", "(") + table + element("mo", ")"));
    if (name == "cases") return row(element("mo", "{") + table);
    return table;
  }

  std::string_view rest_, whole_;
  bool display_;
  int depth_ = 0;
};

}  // namespace

std::string mathml(std::string_view latex, bool display) {
  return text("<math", display ? " display=\"block\"" : "", "><mrow>",
              Parser(latex, display).formula(), "</mrow></math>");
}

}  // namespace longhand::app::book
