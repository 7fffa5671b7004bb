/** Opcodes, flags and outcomes of work requests. */
package org.verbena.verbs.work;
