# Lets the program write its manual pages and completions to OUT, from the tables of its help:
#   cmake -DPROGRAM=... -DOUT=... -P pages.cmake
function(run)
  cmake_parse_arguments(arg "" "TO" "" ${ARGN})
  set(to "")
  if(arg_TO)
    set(to OUTPUT_FILE ${arg_TO})
  endif()
  execute_process(COMMAND ${PROGRAM} ${arg_UNPARSED_ARGUMENTS} ${to} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(MAKE_DIRECTORY ${OUT}/completions)
run(man --out ${OUT}/man1)
run(completion bash TO ${OUT}/completions/longhand)
run(completion zsh TO ${OUT}/completions/_longhand)
run(completion fish TO ${OUT}/completions/longhand.fish)
