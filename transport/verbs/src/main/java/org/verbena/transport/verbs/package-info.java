/** The native provider: connections, memory and completions over librdmacm and libibverbs. */
package org.verbena.transport.verbs;
