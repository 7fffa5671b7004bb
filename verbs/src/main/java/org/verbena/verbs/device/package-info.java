/** What devices and ports are, can do and report. */
package org.verbena.verbs.device;
