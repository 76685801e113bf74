// Tests shell completions and the manual page, which are made from the same tables as the help.
#include "apps/command.h"
#include "apps/terminal.h"
#include "core/atomic_file.h"
#include "tests/program.h"

namespace shell_test {

using namespace longhand;

/// The completions that bash offers for the last word.
std::string offered(const Program& program, const std::string& words) {
  write_atomically(program.folder / "ask.sh",
                   "source <(" + std::string(built_program) +
                       " completion bash)\n"
                       "COMP_WORDS=(longhand \"$@\"); COMP_CWORD=$#\n_longhand\n"
                       "echo \" ${COMPREPLY[*]} \"\n");
  const std::string line = "cd " + program.folder.path().string() + " && bash ask.sh " + words +
                           " >offered 2>complaints";
  BOOST_TEST(std::system(line.c_str()) == 0);
  BOOST_TEST(contents(program.path("complaints")) == "");
  return contents(program.path("offered"));
}

}  // namespace shell_test

BOOST_FIXTURE_TEST_SUITE(shell_test, Program)

BOOST_AUTO_TEST_CASE(bash_completes_commands_flags_values_and_files) {
  using shell_test::offered;
  BOOST_TEST(contains(offered(*this, "tr"), " train "));
  BOOST_TEST(contains(offered(*this, "help tr"), " train "));
  BOOST_TEST(contains(offered(*this, "train --batch"), " --batch --batch-tokens "));
  BOOST_TEST(contains(offered(*this, "train --task sort"), " sorting "));
  BOOST_TEST(contains(offered(*this, "train --backend ''"), " reference cpu cuda "));
  BOOST_TEST(contains(offered(*this, "train --schedule ''"), " constant linear cosine one_cycle "));
  BOOST_TEST(offered(*this, "train --steps ''") == "  \n");
  write_atomically(folder / "some.ini", "");
  BOOST_TEST(contains(offered(*this, "train --config so"), " some.ini "));
  BOOST_TEST(contains(offered(*this, "eval so"), " some.ini "));
}

BOOST_AUTO_TEST_CASE(every_shell_knows_every_command_and_flag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = (*this)(text("completion ", shell)).out;
    for (const auto& [name, command] : app::commands()) {
      BOOST_TEST(contains(script, name));
      for (const app::CliFlag& option : command.options) {
        const std::string flag = app::shown_flag(option.name);
        BOOST_TEST(contains(script, shell == std::string("fish") ? "-l " + flag.substr(2) : flag));
      }
    }
  }
  refuses(2, "completion tcsh", "bash, zsh or fish");
}

BOOST_AUTO_TEST_CASE(each_command_has_a_page_with_its_options) {
  BOOST_TEST((*this)("man --out pages").status == 0);
  for (const auto& [name, command] : app::commands()) {
    const std::string page = contents(folder / "pages" / ("longhand-" + name + ".1"));
    BOOST_TEST(page.starts_with(".TH LONGHAND-"));
    BOOST_TEST(page == (*this)("man " + name).out);
    BOOST_TEST(contains(contents(folder / "pages/longhand.1"), "longhand\\-" + name));
  }
  const std::string train = (*this)("man train").out;
  BOOST_TEST(contains(train, "\n.B \\-\\-batch\\-tokens \\fIN\\fR\n"));
  refuses(2, "man trian", "did you mean train?");
}

BOOST_AUTO_TEST_CASE(a_status_line_is_overwritten_and_erased_only_on_terminals) {
  std::ostringstream terminal, file;
  {
    app::StatusLine status(terminal, 8), silent(file, 0);
    status.show("checking 1 of 2");
    status.show("checking 2 of 2");  // not shown, because it is too soon after the first line
    silent.show("checking 1 of 2");  // not a terminal: nothing is shown in the first ten seconds
  }
  BOOST_TEST(terminal.str() == "\rcheckin\033[K\r\033[K");
  BOOST_TEST(file.str() == "");
}

BOOST_AUTO_TEST_CASE(colours_are_used_only_on_terminals_that_allow_them) {
  const auto through_script = [&](const std::string& environment) {
    const std::string line = "cd " + folder.path().string() + " && " + environment +
                             " script -qec '" + built_program + " help train; " + built_program +
                             " nosuch' /dev/null >typed 2>/dev/null </dev/null";
    BOOST_TEST(std::system(line.c_str()) != -1);
    return contents(path("typed"));
  };
  if (std::system("command -v script >/dev/null") == 0) {
    const std::string rich = through_script("TERM=xterm NO_COLOR=");
    BOOST_TEST(contains(rich, "\033[1musage\033[0m"));
    BOOST_TEST(contains(rich, "\033[1;31mlonghand:\033[0m"));
    BOOST_TEST(!contains(through_script("TERM=xterm NO_COLOR=1"), "\033["));
    BOOST_TEST(!contains(through_script("TERM=dumb"), "\033["));
  }
  BOOST_TEST(!contains((*this)("help train", "TERM=xterm").out, "\033["));
}

BOOST_AUTO_TEST_SUITE_END()
