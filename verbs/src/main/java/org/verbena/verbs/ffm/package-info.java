/** Structs, constants and function handles of libibverbs, and what every binding shares. */
package org.verbena.verbs.ffm;
